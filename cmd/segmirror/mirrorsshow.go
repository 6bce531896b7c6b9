package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"segmirror/admin"
)

// The tables' columns, left-aligned. The last column of --list is not padded.
const (
	listRow     = "%-30s %-10s %-26s %s\n"
	describeRow = "%-30s %-40s %-10s %-15s %-18s %-8s %-12s\n"
)

func (c mirrorsCall) list() error {
	got, err := c.client.ListMirrors(c.Context.Context, admin.ListMirrorsOptions{})
	if err != nil {
		return err
	}
	warnUnreachable(c.Context, got.Unreachable)
	mirrors := slices.DeleteFunc(got.Mirrors, func(m admin.MirrorListing) bool {
		return c.mirror != "" && m.Name != c.mirror
	})
	if len(mirrors) == 0 {
		c.printf("No mirrors found\n")
		return nil
	}
	c.printf(listRow, "MIRROR", "TOPICS", "CLUSTER-ID", "BOOTSTRAP-SERVER")
	for _, m := range mirrors {
		cluster := m.SourceClusterID
		if cluster == "" {
			cluster = "-"
		}
		c.printf(listRow, m.Name, strconv.Itoa(m.TopicCount), cluster, m.SourceBootstrap)
	}
	return nil
}

// describe shows partitions: of all mirrors or those named, of all topics or those selected.
func (c mirrorsCall) describe() error {
	names := splitCommas(c.mirror)
	got, err := c.client.DescribeMirrors(c.Context.Context, names, admin.DescribeMirrorsOptions{})
	if err != nil {
		return err
	}
	warnUnreachable(c.Context, got.Unreachable)
	for i := range got.Mirrors {
		if err := got.Mirrors[i].Err; err != nil {
			return explainMirror(got.Mirrors[i].Name, err)
		}
		c.keepSelected(&got.Mirrors[i])
	}
	for _, name := range names {
		if !slices.ContainsFunc(got.Mirrors, func(m admin.MirrorDescription) bool { return m.Name == name }) {
			return mirrorNotFound(name)
		}
	}
	if c.Bool("check") {
		return c.check(got)
	}
	if c.Bool("json") {
		return c.describeJSON(got.Mirrors)
	}
	c.describeTable(got.Mirrors)
	return nil
}

// keepSelected leaves out the topics that --topics does not select.
func (c mirrorsCall) keepSelected(m *admin.MirrorDescription) {
	if !c.topics.Empty() {
		m.Topics = slices.DeleteFunc(m.Topics, func(t admin.TopicDescription) bool { return !c.topics.Matches(t.Name) })
	}
}

func (c mirrorsCall) describeTable(mirrors []admin.MirrorDescription) {
	var rows int
	for _, m := range mirrors {
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				if rows == 0 {
					c.printf(describeRow, "MIRROR", "TOPIC", "PARTITION", "SOURCE-OFFSET", "DESTINATION-OFFSET", "LAG", "STATE")
				}
				rows++
				c.printf(describeRow, m.Name, t.Name, strconv.Itoa(int(p.Partition)), offset(p.SourceOffset),
					offset(p.DestinationOffset), offset(p.Lag), p.State)
				if p.Cause != "" {
					fmt.Fprintf(c.App.ErrWriter, "segmirror: mirror %s: %s-%d is %s after %d attempt(s): %s\n",
						m.Name, t.Name, p.Partition, p.State, p.Attempts, oneLineText(p.Cause))
				}
			}
		}
	}
	if rows == 0 {
		c.printf("No mirror partitions found\n")
	}
}

// offset is a number, or - where it is not known.
func offset(n int64) string {
	if n < 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// describedPartition is one element of --describe --json. -1 stands for a number that is not known.
type describedPartition struct {
	Mirror            string   `json:"mirror"`
	Topic             string   `json:"topic"`
	Partition         int32    `json:"partition"`
	SourceOffset      int64    `json:"sourceOffset"`
	DestinationOffset int64    `json:"destinationOffset"`
	Lag               int64    `json:"lag"`
	State             string   `json:"state"`
	LastMirrorEpoch   int32    `json:"lastMirrorEpoch"`
	LastMirroredEnd   int64    `json:"lastMirroredEnd"`
	Attempts          int32    `json:"attempts"`
	Cause             string   `json:"cause"`
	SourceChain       []string `json:"sourceChain"` // ids of the clusters the records come through, the source first
	Agent             string   `json:"agent"`
}

func (c mirrorsCall) describeJSON(mirrors []admin.MirrorDescription) error {
	partitions := []describedPartition{}
	for _, m := range mirrors {
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				partitions = append(partitions, describedPartition{
					Mirror: m.Name, Topic: t.Name, Partition: p.Partition, SourceOffset: p.SourceOffset,
					DestinationOffset: p.DestinationOffset, Lag: p.Lag, State: p.State, LastMirrorEpoch: p.LastMirrorEpoch,
					LastMirroredEnd: p.LastMirroredEnd, Attempts: p.Attempts, Cause: p.Cause,
					SourceChain: append([]string{}, t.SourceChain...), Agent: p.Agent,
				})
			}
		}
	}
	return c.printJSON(partitions)
}

func (c mirrorsCall) printJSON(document any) error {
	enc := json.NewEncoder(c.App.Writer)
	enc.SetIndent("", "  ")
	return enc.Encode(document)
}

// checkedMirror is one element of --describe --check --json.
type checkedMirror struct {
	Mirror  string   `json:"mirror"`
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons"` // why not, one a partition
}

// check says whether mirrors are ready to fail over. An agent that does not answer holds partitions nobody knows of.
func (c mirrorsCall) check(got *admin.Descriptions) error {
	checked := []checkedMirror{}
	var notReady []string
	for i := range got.Mirrors {
		m := &got.Mirrors[i]
		reasons := m.Ready()
		for _, e := range got.Unreachable {
			reasons = append(reasons, e.Addr+" does not answer")
		}
		checked = append(checked, checkedMirror{
			Mirror: m.Name, Ready: len(reasons) == 0, Reasons: append([]string{}, reasons...),
		})
		if len(reasons) > 0 {
			notReady = append(notReady, fmt.Sprintf("mirror %s is not ready to fail over: %s", m.Name,
				strings.Join(reasons, "; ")))
		}
	}
	switch {
	case c.Bool("json"):
		if err := c.printJSON(checked); err != nil {
			return err
		}
	case len(checked) == 0:
		c.printf("No mirrors found\n")
	default:
		for _, m := range checked {
			if m.Ready {
				c.printf("Mirror %s is ready to fail over\n", m.Mirror)
			}
		}
	}
	if len(checked) == 0 {
		return errors.New("there is no mirror that could fail over")
	}
	if len(notReady) > 0 {
		return errors.New(strings.Join(notReady, "; "))
	}
	return nil
}
