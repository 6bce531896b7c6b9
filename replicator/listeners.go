package replicator

import (
	"fmt"
	"os"
	"strings"
)

// parseListeners reads a list of listeners as Kafka writes it, PLAINTEXT://host:port, and returns host:port of each.
// A bare host:port is PLAINTEXT too.
func parseListeners(list string) ([]string, error) {
	var out []string
	for _, entry := range splitList(list) {
		name, addr, ok := strings.Cut(entry, "://")
		if !ok {
			name, addr = "PLAINTEXT", entry
		}
		if !strings.EqualFold(name, "PLAINTEXT") {
			return nil, fmt.Errorf("listener %s: only PLAINTEXT is served", entry)
		}
		var checked string
		if err := setHostPort(&checked, addr); err != nil {
			return nil, fmt.Errorf("listener %s: %w", entry, err)
		}
		out = append(out, checked)
	}
	return out, nil
}

func setListeners(dst *[]string, v string) error {
	list, err := parseListeners(v)
	*dst = list
	return err
}

func hostName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("advertised.listeners: this host has no name: %w", err)
	}
	return name, nil
}
