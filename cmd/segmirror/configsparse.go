package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"segmirror/admin"
	"segmirror/fetchwire"
)

// readOps returns what --add-config, --add-config-file and --delete-config ask for.
func readOps(c *cli.Context) ([]admin.ConfigOp, error) {
	add, file, remove := text(c, "add-config"), text(c, "add-config-file"), text(c, "delete-config")
	if add != "" && file != "" {
		return nil, kafkaSays("Only one of --add-config or --add-config-file must be specified")
	}
	if !c.IsSet("add-config") && file == "" && remove == "" {
		return nil, kafkaSays("At least one of --add-config, --add-config-file, or --delete-config must be specified " +
			"with --alter")
	}
	added := map[string]string{}
	var err error
	switch {
	case file != "":
		added, err = readConfigFile("add-config-file", file)
	case c.IsSet("add-config"):
		added, err = parseAddConfig(add)
	}
	if err != nil {
		return nil, err
	}
	var ops []admin.ConfigOp
	for _, key := range slices.Sorted(maps.Keys(added)) {
		if !configKey.MatchString(key) {
			return nil, kafkaSays("Invalid character found for config key: %s", key)
		}
		ops = append(ops, admin.ConfigOp{Op: fetchwire.ConfigSet, Key: key, Value: added[key]})
	}
	for _, key := range splitCommas(remove) {
		ops = append(ops, admin.ConfigOp{Op: fetchwire.ConfigDelete, Key: key})
	}
	return ops, nil
}

var configKey = regexp.MustCompile(`^[a-zA-Z0-9._-]*$`)

// parseAddConfig reads k1=v1,k2=[v1,v2]: commas and equals signs inside square brackets belong to the value, and the
// brackets do not. A key given twice has its last value. Kafka: ConfigCommand.parseConfigsToBeAdded.
func parseAddConfig(list string) (map[string]string, error) {
	added := map[string]string{}
	for _, pair := range splitOutside(list, ',') {
		parts := splitOutside(pair, '=')
		if len(parts) != 2 {
			return nil, kafkaSays("Invalid entity config: all configs to be added must be in the format \"key=val\" " +
				"or  \"key=[val1,val2]\" to group values which contain commas.")
		}
		value := strings.NewReplacer("[", "", "]", "").Replace(parts[1])
		added[strings.TrimSpace(parts[0])] = strings.TrimSpace(value)
	}
	return added, nil
}

// splitOutside splits at a separator outside square brackets: one whose next bracket, if there is any, is an opening
// one. A trailing comma ends nothing, as in Kafka's split; a trailing equals sign begins an empty value.
func splitOutside(text string, separator byte) []string {
	var parts []string
	start := 0
	for i := range len(text) {
		if text[i] != separator {
			continue
		}
		if next := strings.IndexAny(text[i+1:], "[]"); next >= 0 && text[i+1+next] == ']' {
			continue
		}
		parts = append(parts, text[start:i])
		start = i + 1
	}
	parts = append(parts, text[start:])
	for separator == ',' && len(parts) > 1 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}
