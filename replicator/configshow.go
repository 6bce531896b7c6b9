package replicator

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"segmirror/fetchwire"
)

// shownKey is how a mirror-level key is described.
type shownKey struct {
	kind int8                         // fetchwire.ConfigTypeString and following
	show func(m *MirrorConfig) string // the value in force
}

// shownKeys has every key of mirrorKeys.
var shownKeys = map[string]shownKey{
	keyBootstrap:                         showList(func(m *MirrorConfig) []string { return m.Client.BootstrapServers }),
	keyInclude:                           showList(func(m *MirrorConfig) []string { return m.TopicsInclude }),
	keyExclude:                           showList(func(m *MirrorConfig) []string { return m.TopicsExclude }),
	"mirror.peer.bootstrap.servers":      showList(func(m *MirrorConfig) []string { return m.PeerBootstrap }),
	"mirror.groups.include":              showReserved("mirror.groups.include"),
	"mirror.groups.exclude":              showReserved("mirror.groups.exclude"),
	"mirror.acl.include":                 showReserved("mirror.acl.include"),
	"mirror.topic.properties.exclude":    showReserved("mirror.topic.properties.exclude"),
	"request.timeout.ms":                 showMs(func(m *MirrorConfig) time.Duration { return m.Client.RequestTimeout }),
	"socket.connection.setup.timeout.ms": showMs(func(m *MirrorConfig) time.Duration { return m.Client.ConnectTimeout }),
	"mirror.socket.timeout.ms":           showMs(func(m *MirrorConfig) time.Duration { return m.Client.SocketTimeout }),
	"mirror.fetch.wait.max.ms":           showMs(func(m *MirrorConfig) time.Duration { return m.Fetch.WaitMax }),
	"mirror.fetch.backoff.ms":            showMs(func(m *MirrorConfig) time.Duration { return m.Fetch.Backoff }),
	"mirror.fetch.min.bytes":             showInt(func(m *MirrorConfig) int64 { return int64(m.Fetch.MinBytes) }),
	"mirror.fetch.max.bytes":             showInt(func(m *MirrorConfig) int64 { return int64(m.Fetch.MaxBytes) }),
	"mirror.fetch.response.max.bytes":    showInt(func(m *MirrorConfig) int64 { return int64(m.Fetch.ResponseMaxBytes) }),
	"mirror.socket.receive.buffer.bytes": showInt(func(m *MirrorConfig) int64 {
		return int64(m.Client.ReceiveBufferBytes)
	}),
	"mirror.start.position": {
		kind: fetchwire.ConfigTypeString, show: func(m *MirrorConfig) string { return m.Start.String() },
	},
	"mirror.gap.policy": {kind: fetchwire.ConfigTypeString, show: func(m *MirrorConfig) string {
		if m.GapFail {
			return "fail"
		}
		return "resume"
	}},
	"mirror.leader.epoch.policy": {
		kind: fetchwire.ConfigTypeString, show: func(m *MirrorConfig) string { return m.EpochPolicy.String() },
	},
	"mirror.unclean.leader.election.enable": {
		kind: fetchwire.ConfigTypeBoolean, show: func(m *MirrorConfig) string {
			return strconv.FormatBool(m.UncleanElection)
		},
	},
	throttleRateKey: {
		kind: fetchwire.ConfigTypeLong, show: func(m *MirrorConfig) string { return showRate(m.ThrottledRate) },
	},
}

func showList(get func(*MirrorConfig) []string) shownKey {
	return shownKey{
		kind: fetchwire.ConfigTypeList, show: func(m *MirrorConfig) string { return strings.Join(get(m), ",") },
	}
}

func showReserved(key string) shownKey {
	return shownKey{kind: fetchwire.ConfigTypeList, show: func(m *MirrorConfig) string { return m.Reserved[key] }}
}

func showMs(get func(*MirrorConfig) time.Duration) shownKey {
	return shownKey{kind: fetchwire.ConfigTypeLong, show: func(m *MirrorConfig) string {
		return strconv.FormatInt(get(m).Milliseconds(), 10)
	}}
}

func showInt(get func(*MirrorConfig) int64) shownKey {
	return shownKey{kind: fetchwire.ConfigTypeInt, show: func(m *MirrorConfig) string {
		return strconv.FormatInt(get(m), 10)
	}}
}

// showRate is a throttle's rate, "" for none.
func showRate(rate int64) string {
	if rate == 0 {
		return ""
	}
	return strconv.FormatInt(rate, 10)
}

// String returns the position's words in configuration files.
func (s StartPosition) String() string {
	switch s.At {
	case StartLatest:
		return "latest"
	case StartTimestamp:
		return fmt.Sprintf("timestamp:%d", s.Value)
	case StartOffset:
		return fmt.Sprintf("offset:%d", s.Value)
	default:
		return "earliest"
	}
}

// secretKeys are client keys whose values are never shown. Kafka: ConfigDef.Type.PASSWORD.
var secretKeys = map[string]bool{
	"sasl.jaas.config": true, "ssl.keystore.key": true, "ssl.keystore.certificate.chain": true,
	"ssl.keystore.password": true, "ssl.key.password": true, "ssl.truststore.certificates": true,
	"ssl.truststore.password": true,
}

// clientLists are client keys that hold a list.
var clientLists = map[string]bool{"ssl.enabled.protocols": true, "ssl.cipher.suites": true}

// mirrorKeyKind returns the type of a mirror-level key's value; false for a key that there is not.
func mirrorKeyKind(key string) (int8, bool) {
	shown, ok := shownKeys[key]
	switch {
	case ok:
		return shown.kind, true
	case !isClientKey(key):
		return fetchwire.ConfigTypeUnknown, false
	case secretKeys[key]:
		return fetchwire.ConfigTypePassword, true
	case clientLists[key]:
		return fetchwire.ConfigTypeList, true
	}
	return fetchwire.ConfigTypeString, true
}

// knownMirrorKeys are all keys of a mirror, in order.
func knownMirrorKeys() []string {
	keys := slices.Collect(maps.Keys(mirrorKeys))
	keys = slices.AppendSeq(keys, maps.Keys(clientKeys))
	slices.Sort(keys)
	return keys
}

// configPlace is a value and where it comes from.
type configPlace struct {
	value  string // "" is null
	source int8
}

// describedKey makes the description of a key whose places are given, the strongest first.
func describedKey(key string, kind int8, readOnly bool, places ...configPlace) fetchwire.DescribedConfig {
	secret := kind == fetchwire.ConfigTypePassword
	shown := func(v string) *string {
		if secret || v == "" {
			return nil
		}
		return &v
	}
	out := fetchwire.DescribedConfig{
		Name: key, Value: shown(places[0].value), ReadOnly: readOnly, Source: places[0].source, IsSensitive: secret,
		ConfigType: kind,
	}
	for _, p := range places {
		out.ConfigSynonyms = append(out.ConfigSynonyms,
			fetchwire.ConfigSynonym{Name: key, Value: shown(p.value), Source: p.source})
	}
	return out
}

// describeMirrorConfig describes every key of a mirror as it is in force.
func (a *Agent) describeMirrorConfig(name string) ([]fetchwire.DescribedConfig, error) {
	if !a.exists(name) {
		return nil, unknownMirror(name)
	}
	cfg, err := a.mirrorConfig(name)
	if err != nil {
		return nil, refuse(fetchwire.CodeInvalidConfig, "%v", err)
	}
	declared := a.declared[name]
	stored := a.metadata.config(resource{kind: resourceMirror, name: name})
	if policy := a.states.mirror(name).epochPolicy; policy != EpochPolicyDefault {
		cfg.EpochPolicy = policy
	}
	fallback := DefaultMirrorConfig(name)
	a.cfg.chooseEpochPolicy(&fallback)
	var out []fetchwire.DescribedConfig
	for _, key := range slices.Sorted(maps.Keys(shownKeys)) {
		k := shownKeys[key]
		var places []configPlace
		_, own := stored[key]
		_, added := stored[key+overlayAdded]
		_, removed := stored[key+overlayRemoved]
		if own || added || removed {
			value := k.show(&cfg)
			if declared != nil && own {
				value = stored[key]
			}
			places = append(places, configPlace{value, fetchwire.ConfigSourceMirror})
		}
		if of, ok := a.fileValue(name, key); ok {
			places = append(places, configPlace{of, fetchwire.ConfigSourceStaticBroker})
		}
		places = append(places, configPlace{k.show(&fallback), fetchwire.ConfigSourceDefault})
		readOnly := declared != nil && key != throttleRateKey || key == "mirror.leader.epoch.policy"
		out = append(out, describedKey(key, k.kind, readOnly, places...))
	}
	source := fetchwire.ConfigSourceMirror
	if declared != nil {
		source = fetchwire.ConfigSourceStaticBroker
	}
	for _, key := range slices.Sorted(maps.Keys(cfg.Client.Security)) {
		kind, _ := mirrorKeyKind(key)
		out = append(out, describedKey(key, kind, declared != nil, configPlace{cfg.Client.Security[key], source}))
	}
	return out, nil
}

// fileValue returns what agent.properties says of a mirror's key, itself or for all mirrors.
func (a *Agent) fileValue(name, key string) (string, bool) {
	if declared := a.declared[name]; declared != nil {
		value, fallback := shownKeys[key].show(declared), DefaultMirrorConfig(name)
		a.cfg.chooseEpochPolicy(&fallback)
		return value, value != shownKeys[key].show(&fallback)
	}
	value, ok := a.cfg.mirrorDefaults[key]
	return value, ok
}

// describeBrokerConfig describes what may be set of this node; name "" is the default of all.
func (a *Agent) describeBrokerConfig(name string) ([]fetchwire.DescribedConfig, error) {
	if err := a.checkBroker(name); err != nil {
		return nil, err
	}
	var places []configPlace
	add := func(of string, source int8) {
		if v, ok := a.metadata.value(resource{kind: resourceBroker, name: of}, throttleRateKey); ok {
			places = append(places, configPlace{v, source})
		}
	}
	if name == "" {
		if add("", fetchwire.ConfigSourceDynamicDefault); len(places) == 0 {
			return nil, nil
		}
		return []fetchwire.DescribedConfig{describedKey(throttleRateKey, fetchwire.ConfigTypeLong, false, places...)}, nil
	}
	add(name, fetchwire.ConfigSourceDynamicBroker)
	add("", fetchwire.ConfigSourceDynamicDefault)
	if a.cfg.ThrottledRate > 0 {
		places = append(places, configPlace{showRate(a.cfg.ThrottledRate), fetchwire.ConfigSourceStaticBroker})
	}
	places = append(places, configPlace{"", fetchwire.ConfigSourceDefault})
	out := []fetchwire.DescribedConfig{describedKey(throttleRateKey, fetchwire.ConfigTypeLong, false, places...)}
	fixed := func(key, value string, kind int8) {
		out = append(out, describedKey(key, kind, true, configPlace{value, fetchwire.ConfigSourceStaticBroker}))
	}
	fixed("advertised.listeners", strings.Join(a.cfg.Server.AdvertisedListeners, ","), fetchwire.ConfigTypeList)
	fixed("listeners", strings.Join(a.cfg.Server.Listeners, ","), fetchwire.ConfigTypeList)
	fixed("log.dirs", strings.Join(a.cfg.LogDirs, ","), fetchwire.ConfigTypeList)
	fixed("mirror.metadata.refresh.interval.ms", strconv.FormatInt(a.cfg.MetadataRefresh.Milliseconds(), 10),
		fetchwire.ConfigTypeLong)
	fixed("mirror.num.replica.fetchers", strconv.Itoa(a.cfg.NumFetchers), fetchwire.ConfigTypeInt)
	fixed("node.id", itoa(a.cfg.NodeID), fetchwire.ConfigTypeInt)
	return out, nil
}

// checkBroker refuses a broker that this agent is not.
func (a *Agent) checkBroker(name string) error {
	if name != "" && name != itoa(a.cfg.NodeID) {
		return refuse(fetchwire.CodeInvalidRequest, "this agent is node %d, not %q", a.cfg.NodeID, name)
	}
	return nil
}

// describeTopicConfig describes what a topic's copy is kept with, and what may be set of it here.
func (a *Agent) describeTopicConfig(name string) ([]fetchwire.DescribedConfig, error) {
	if !a.knowsTopic(name) {
		return nil, refuse(fetchwire.CodeUnknownTopicOrPartition, "no mirrored topic %s", name)
	}
	var out []fetchwire.DescribedConfig
	for _, m := range a.allMirrors() {
		if p := m.first(name, func(State) bool { return true }); p != nil {
			out = p.describe()
			break
		}
	}
	stored := a.metadata.config(resource{kind: resourceTopic, name: name})
	if v, ok := stored[keyMirrorName]; ok {
		out = append(out, describedKey(keyMirrorName, fetchwire.ConfigTypeString, true,
			configPlace{v, fetchwire.ConfigSourceTopic}))
	}
	places := []configPlace{{"", fetchwire.ConfigSourceDefault}}
	if v, ok := stored[throttleReplicasKey]; ok {
		places = append([]configPlace{{v, fetchwire.ConfigSourceTopic}}, places...)
	}
	return append(out, describedKey(throttleReplicasKey, fetchwire.ConfigTypeList, false, places...)), nil
}

// knowsTopic reports whether a mirror holds a topic, or a copy of it lies here.
func (a *Agent) knowsTopic(name string) bool {
	if a.binding(name).want != WantedNone || a.logs.hasTopic(name) {
		return true
	}
	return slices.ContainsFunc(a.allMirrors(), func(m *mirror) bool {
		return m.first(name, func(State) bool { return true }) != nil
	})
}
