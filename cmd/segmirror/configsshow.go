package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"segmirror/admin"
	"segmirror/fetchwire"
)

// describe prints the configuration of one resource, or of all of its kind.
func (c configsCall) describe() error {
	names := []string{c.name}
	if !c.named {
		var err error
		if names, err = c.names(); err != nil {
			return err
		}
	}
	described := make([]describedConfigs, 0, len(names))
	for _, name := range names {
		c.name = name
		d, err := c.describeOne()
		if err != nil {
			return err
		}
		if d != nil {
			described = append(described, *d)
		}
	}
	if !c.Bool("json") {
		return nil
	}
	enc := json.NewEncoder(c.App.Writer)
	enc.SetIndent("", "  ")
	return enc.Encode(described)
}

// names lists what there is of a kind; the default of all brokers comes last.
func (c configsCall) names() ([]string, error) {
	ctx := c.Context.Context
	switch c.resource {
	case fetchwire.ResourceTopic:
		return c.client.Topics(ctx)
	case fetchwire.ResourceBroker:
		nodes, err := c.client.Nodes(ctx)
		var names []string
		for _, n := range nodes {
			names = append(names, strconv.Itoa(int(n.ID)))
		}
		return append(names, ""), err
	}
	list, err := c.client.ListMirrors(ctx, admin.ListMirrorsOptions{})
	if err != nil {
		return nil, err
	}
	warnUnreachable(c.Context, list.Unreachable)
	var names []string
	for _, m := range list.Mirrors {
		names = append(names, m.Name)
	}
	return names, nil
}

// describedConfigs is one element of --describe --json.
type describedConfigs struct {
	EntityType string           `json:"entityType"`
	EntityName string           `json:"entityName"` // "" = the default of all brokers
	Configs    []describedEntry `json:"configs"`
}

type describedEntry struct {
	Name      string             `json:"name"`
	Value     *string            `json:"value"` // null where it is sensitive
	Source    string             `json:"source"`
	Sensitive bool               `json:"sensitive"`
	ReadOnly  bool               `json:"readOnly"`
	Synonyms  []describedSynonym `json:"synonyms"`
}

type describedSynonym struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`
	Source string  `json:"source"`
}

// describeOne prints one resource's configuration, or returns it for --json. A resource that is not there is said in a
// line and is no error, as in Kafka's tool.
func (c configsCall) describeOne() (*describedConfigs, error) {
	resource := admin.ConfigResource{Type: c.resource, Name: c.name}
	got, err := c.client.DescribeConfigs(c.Context.Context, []admin.ConfigResource{resource},
		admin.DescribeConfigsOptions{IncludeSynonyms: true})
	if err == nil {
		err = got[0].Err
	}
	if notThere(err) {
		if !c.Bool("json") {
			fmt.Fprintf(c.App.Writer, "The %s '%s' doesn't exist and doesn't have dynamic config.\n", c.singular(), c.name)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.entity(), err)
	}
	entries := slices.DeleteFunc(got[0].Entries, func(e admin.ConfigEntry) bool {
		return !c.Bool("all") && !slices.Contains(c.dynamic(), e.Source)
	})
	slices.SortFunc(entries, func(a, b admin.ConfigEntry) int { return cmp.Compare(a.Key, b.Key) })
	if c.Bool("json") {
		return c.document(entries), nil
	}
	c.table(entries)
	return nil, nil
}

func notThere(err error) bool {
	if errors.Is(err, admin.ErrUnknownNode) {
		return true
	}
	var answered fetchwire.KafkaError
	return errors.As(err, &answered) && slices.Contains([]int16{
		fetchwire.CodeUnknownTopicOrPartition, fetchwire.CodeUnknownMirror,
	}, answered.Code)
}

// dynamic returns the sources of what was set for this very resource.
func (c configsCall) dynamic() []int8 {
	switch {
	case c.resource == fetchwire.ResourceTopic:
		return []int8{fetchwire.ConfigSourceTopic}
	case c.resource == fetchwire.ResourceMirror:
		return []int8{fetchwire.ConfigSourceMirror, fetchwire.ConfigSourceTopic}
	case c.name == "":
		return []int8{fetchwire.ConfigSourceDynamicDefault}
	default:
		return []int8{fetchwire.ConfigSourceDynamicBroker}
	}
}

func (c configsCall) table(entries []admin.ConfigEntry) {
	which := "Dynamic"
	if c.Bool("all") {
		which = "All"
	}
	if c.name == "" {
		fmt.Fprintf(c.App.Writer, "Default configs for %s in the cluster are:\n", c.kind)
	} else {
		fmt.Fprintf(c.App.Writer, "%s configs for %s are:\n", which, c.entity())
	}
	for _, e := range entries {
		synonyms := make([]string, len(e.Synonyms))
		for i, s := range e.Synonyms {
			synonyms[i] = fmt.Sprintf("%s:%s=%s", sourceName(s.Source), s.Key, orNull(s.Value))
		}
		fmt.Fprintf(c.App.Writer, "  %s=%s sensitive=%t synonyms={%s}\n", e.Key, orNull(e.Value), e.Sensitive,
			strings.Join(synonyms, ", "))
	}
}

func (c configsCall) document(entries []admin.ConfigEntry) *describedConfigs {
	d := &describedConfigs{EntityType: c.kind, EntityName: c.name, Configs: []describedEntry{}}
	for _, e := range entries {
		out := describedEntry{
			Name: e.Key, Value: e.Value, Source: sourceName(e.Source), Sensitive: e.Sensitive, ReadOnly: e.ReadOnly,
			Synonyms: []describedSynonym{},
		}
		for _, s := range e.Synonyms {
			out.Synonyms = append(out.Synonyms, describedSynonym{Name: s.Key, Value: s.Value, Source: sourceName(s.Source)})
		}
		d.Configs = append(d.Configs, out)
	}
	return d
}

func orNull(value *string) string {
	if value == nil {
		return "null"
	}
	return *value
}

// sourceName is Kafka's name of where a value comes from. Kafka: ConfigEntry.ConfigSource.
func sourceName(source int8) string {
	switch source {
	case fetchwire.ConfigSourceTopic:
		return "DYNAMIC_TOPIC_CONFIG"
	case fetchwire.ConfigSourceDynamicBroker:
		return "DYNAMIC_BROKER_CONFIG"
	case fetchwire.ConfigSourceDynamicDefault:
		return "DYNAMIC_DEFAULT_BROKER_CONFIG"
	case fetchwire.ConfigSourceStaticBroker:
		return "STATIC_BROKER_CONFIG"
	case fetchwire.ConfigSourceDefault:
		return "DEFAULT_CONFIG"
	case fetchwire.ConfigSourceMirror:
		return "DYNAMIC_MIRROR_CONFIG"
	}
	return "UNKNOWN"
}
