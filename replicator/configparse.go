package replicator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
)

// ReadConfig is ParseConfig of the properties file at path, in Java's format without variable expansion.
func ReadConfig(path string, overrides []string) (Config, error) {
	props, err := ReadProperties(path)
	if err != nil {
		return Config{}, err
	}
	return ParseConfig(props, overrides)
}

// ParseConfig reads the keys of agent.properties; overrides are "key=value" and win over props.
//
// Every fault is reported, joined, each wrapping ErrConfig and naming its key; an unknown key names the nearest
// known one. Values of secrets never appear in an error.
func ParseConfig(props map[string]string, overrides []string) (Config, error) {
	p := configParser{cfg: DefaultConfig(), props: maps.Clone(props), defaults: map[string]string{}}
	if p.props == nil {
		p.props = map[string]string{}
	}
	for _, o := range overrides {
		key, value, ok := strings.Cut(o, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			p.fault("--override %q is not key=value", key)
			continue
		}
		p.props[key] = strings.TrimSpace(value)
	}
	p.declareMirrors()
	for _, key := range slices.Sorted(maps.Keys(p.props)) {
		p.key(key, strings.TrimSpace(p.props[key]))
	}
	p.finishMirrors()
	if len(p.errs) == 0 {
		if err := p.cfg.Validate(); err != nil {
			p.errs = append(p.errs, err)
		}
	}
	slices.Sort(p.cfg.WithoutEffect)
	return p.cfg, errors.Join(p.errs...)
}

// configParser collects what one pass over the keys finds.
type configParser struct {
	cfg      Config
	props    map[string]string
	names    []string                     // declared mirrors, longest first, so that the longest name wins
	mirror   map[string]map[string]string // name -> key -> value
	defaults map[string]string            // mirror-level keys given for all mirrors
	errs     []error
}

func (p *configParser) fault(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

func (p *configParser) declareMirrors() {
	p.names = splitList(p.props["mirrors"])
	taken := takenNames()
	p.mirror = map[string]map[string]string{}
	for _, name := range p.names {
		if taken[strings.SplitN(name, ".", 2)[0]] {
			p.fault("mirrors: the name %q could not be told from the keys mirror.%s.*; choose another",
				name, strings.SplitN(name, ".", 2)[0])
		}
		if p.mirror[name] != nil {
			p.fault("mirrors: %q is declared twice", name)
		}
		p.mirror[name] = map[string]string{}
	}
	slices.SortFunc(p.names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
}

// key files one property: an agent key, a default of all mirrors or a key of one mirror.
func (p *configParser) key(key, value string) {
	if key == "mirrors" {
		return
	}
	if k, ok := agentKeys[key]; ok {
		if err := k.set(&p.cfg, value); err != nil {
			p.fault("%s: %w", key, err)
		}
		if k.noEffect {
			p.cfg.WithoutEffect = append(p.cfg.WithoutEffect, key)
		}
		return
	}
	if set, ok := logKeys[key]; ok {
		if err := set(&p.cfg.Log, value); err != nil {
			p.fault("%s: %w", key, err)
		}
		return
	}
	if _, ok := mirrorKeys[key]; ok && strings.HasPrefix(key, "mirror.") {
		p.defaults[key] = value
		return
	}
	for _, name := range p.names {
		if inner, ok := strings.CutPrefix(key, "mirror."+name+"."); ok {
			p.mirrorKey(name, inner, value)
			return
		}
	}
	p.unknown(key)
}

// mirrorKey files a key of one mirror. The inner `mirror.` may be left out: mirror.dr.topics.include is
// mirror.dr.mirror.topics.include.
func (p *configParser) mirrorKey(name, inner, value string) {
	canonical := inner
	if _, ok := mirrorKeys[inner]; !ok && !isClientKey(inner) {
		canonical = "mirror." + inner
		if _, ok := mirrorKeys[canonical]; !ok {
			known := slices.Collect(maps.Keys(mirrorKeys))
			known = append(known, slices.Collect(maps.Keys(clientKeys))...)
			p.fault("unknown key mirror.%s.%s: the nearest is mirror.%s.%s", name, inner, name, nearestKey(inner, known))
			return
		}
	}
	if _, twice := p.mirror[name][canonical]; twice {
		p.fault("mirror.%s.%s is given twice, with and without the inner \"mirror.\"", name, canonical)
	}
	p.mirror[name][canonical] = value
}

func (p *configParser) unknown(key string) {
	if rest, ok := strings.CutPrefix(key, "mirror."); ok && strings.Contains(rest, ".") {
		for inner := range mirrorKeys {
			if strings.HasSuffix(rest, "."+inner) {
				p.fault("unknown key %s: no mirror %q is declared in mirrors=%s", key,
					strings.TrimSuffix(strings.TrimSuffix(rest, "."+inner), ".mirror"), p.props["mirrors"])
				return
			}
		}
	}
	known := slices.Collect(maps.Keys(agentKeys))
	known = append(known, slices.Collect(maps.Keys(logKeys))...)
	known = append(known, "mirrors")
	for inner := range mirrorKeys {
		if strings.HasPrefix(inner, "mirror.") {
			known = append(known, inner)
		}
		for _, name := range p.names {
			known = append(known, "mirror."+name+"."+inner)
		}
	}
	p.fault("unknown key %s: the nearest is %s", key, nearestKey(key, known))
}

func (p *configParser) finishMirrors() {
	p.cfg.mirrorDefaults = p.defaults
	for _, name := range slices.Sorted(maps.Keys(p.mirror)) {
		m, noEffect, err := parseMirror(name, p.defaults, p.mirror[name])
		if err != nil {
			p.errs = append(p.errs, err)
		}
		p.cfg.chooseEpochPolicy(&m)
		for _, key := range noEffect {
			p.cfg.WithoutEffect = append(p.cfg.WithoutEffect, "mirror."+name+"."+key)
		}
		p.cfg.Mirrors = append(p.cfg.Mirrors, m)
	}
}

func setHostPort(dst *string, v string) error {
	if v == "" {
		*dst = ""
		return nil
	}
	_, port, err := net.SplitHostPort(v)
	if err != nil {
		return fmt.Errorf("%q is not host:port", v)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q has no port from 0 to 65535", v)
	}
	*dst = v
	return nil
}

func setAddrs(dst *[]string, v string) error {
	addrs := splitList(v)
	for _, addr := range addrs {
		host := ""
		if err := setHostPort(&host, addr); err != nil {
			return err
		}
	}
	*dst = addrs
	return nil
}

func setPatterns(dst *[]string, v string) error {
	list := splitList(v)
	if _, err := newPattern(list); err != nil {
		return err
	}
	*dst = list
	return nil
}
