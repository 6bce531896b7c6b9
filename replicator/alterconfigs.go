package replicator

import (
	"log/slog"
	"maps"
	"slices"
	"strings"

	"segmirror/fetchwire"
)

// alterConfigs changes configurations: of each resource all that is asked, durably, or nothing.
func (c *client) alterConfigs(
	req *fetchwire.IncrementalAlterConfigsRequest,
) *fetchwire.IncrementalAlterConfigsResponse {
	resp, seen := &fetchwire.IncrementalAlterConfigsResponse{}, map[resource]bool{}
	for i := range req.Resources {
		r := resource{kind: req.Resources[i].ResourceType, name: req.Resources[i].ResourceName}
		err := refuse(fetchwire.CodeInvalidRequest, "%q is named twice in the request", r.name)
		if !seen[r] {
			err = c.server.agent.alterConfig(r, req.Resources[i].Configs, req.ValidateOnly)
		}
		seen[r] = true
		result := mirrorResult(err)
		resp.Resources = append(resp.Resources, fetchwire.AlterConfigsResult{
			ErrorCode: result.ErrorCode, ErrorMessage: result.ErrorMessage, ResourceType: r.kind, ResourceName: r.name,
		})
	}
	return resp
}

// alterConfig checks and stores changes of one resource. Kafka: ConfigurationControlManager.incrementalAlterConfig.
func (a *Agent) alterConfig(r resource, changes []fetchwire.AlterConfig, validateOnly bool) error {
	a.control.Lock()
	defer a.control.Unlock()
	rules, err := a.alterable(r)
	if err != nil {
		return err
	}
	is := a.metadata.config(r)
	next, seen := maps.Clone(is), map[string]bool{}
	for i := range changes {
		change := &changes[i]
		if seen[change.Name] {
			return refuse(fetchwire.CodeInvalidRequest, "%s is changed twice in the request", change.Name)
		}
		seen[change.Name] = true
		kind, err := rules.kind(change.Name)
		if err != nil {
			return err
		}
		if err := alter(next, change, kind, rules.inForce); err != nil {
			return err
		}
	}
	if err := rules.check(next, seen); err != nil {
		return err
	}
	records := configRecords(r, is, next)
	if validateOnly || len(records) == 0 {
		return nil
	}
	if err := a.change(records); err != nil {
		return notStored(err)
	}
	a.logger.Info("configuration altered", slog.Int("resource_type", int(r.kind)), slog.String("resource", r.name),
		slog.Any("keys", slices.Sorted(maps.Keys(seen))))
	return nil
}

// configRecords returns what makes next of is, in order of key.
func configRecords(r resource, is, next map[string]string) []MetadataRecord {
	both := maps.Clone(is)
	maps.Copy(both, next)
	var records []MetadataRecord
	for _, key := range slices.Sorted(maps.Keys(both)) {
		was, had := is[key]
		value, has := next[key]
		switch {
		case !has:
			records = append(records, configRecord(r, key, nil))
		case !had || was != value:
			records = append(records, configRecord(r, key, &value))
		}
	}
	return records
}

// alter makes one change of a resource's configuration in next.
func alter(next map[string]string, change *fetchwire.AlterConfig, kind int8, inForce func(string) string) error {
	if change.Op == fetchwire.ConfigDelete {
		delete(next, change.Name)
		return nil
	}
	if change.Value == nil {
		return refuse(fetchwire.CodeInvalidConfig, "%s: no value is given", change.Name)
	}
	value := strings.TrimSpace(*change.Value)
	if change.Op == fetchwire.ConfigSet {
		next[change.Name] = value
		return nil
	}
	if change.Op != fetchwire.ConfigAppend && change.Op != fetchwire.ConfigSubtract {
		return refuse(fetchwire.CodeInvalidRequest, "%s: there is no operation %d", change.Name, change.Op)
	}
	word := "APPEND"
	if change.Op == fetchwire.ConfigSubtract {
		word = "SUBTRACT"
	}
	if kind != fetchwire.ConfigTypeList {
		return refuse(fetchwire.CodeInvalidConfig, "Can't %s to key %s because its type is not LIST.", word, change.Name)
	}
	was, set := next[change.Name]
	if !set {
		was = inForce(change.Name)
	}
	list := joined(splitList(was), splitList(value))
	if change.Op == fetchwire.ConfigSubtract {
		list = without(splitList(was), splitList(value))
	}
	next[change.Name] = strings.Join(list, ",")
	return nil
}

// alterRules are what a resource's configuration has to keep to.
type alterRules struct {
	kind    func(key string) (int8, error)                              // the type of a key that may be altered
	inForce func(key string) string                                     // the value of a key that is not set
	check   func(next map[string]string, changed map[string]bool) error // of the whole
}

// alterable returns the rules of a resource, or why nothing of it may be altered. control is held.
func (a *Agent) alterable(r resource) (alterRules, error) {
	switch r.kind {
	case resourceMirror:
		return a.alterableMirror(r.name)
	case resourceBroker:
		return throttleRules(r.kind, "broker", throttleRateKey, fetchwire.ConfigTypeLong), a.checkBroker(r.name)
	case resourceTopic:
		rules := throttleRules(r.kind, "topic", throttleReplicasKey, fetchwire.ConfigTypeList)
		if !a.knowsTopic(r.name) {
			return rules, refuse(fetchwire.CodeUnknownTopicOrPartition, "no mirrored topic %s", r.name)
		}
		return rules, nil
	}
	return alterRules{}, refuse(fetchwire.CodeInvalidRequest, "resource type %d has no configuration here", r.kind)
}

// throttleRules are those of a resource of which nothing but a throttle may be altered.
func throttleRules(kind int8, word, throttle string, valueKind int8) alterRules {
	return alterRules{
		inForce: func(string) string { return "" },
		kind: func(key string) (int8, error) {
			switch key {
			case throttle:
				return valueKind, nil
			case keyMirrorName:
				return 0, refuse(fetchwire.CodeInvalidRequest, "%s is not altered: start, stop, pause or resume the topic", key)
			}
			return 0, refuse(fetchwire.CodeInvalidConfig, "Unknown %s configuration: %s; what may be altered here is %s", word,
				key, throttle)
		},
		check: func(next map[string]string, _ map[string]bool) error {
			value, ok := next[throttle]
			if !ok {
				return nil
			}
			if _, err := checkThrottle(kind, throttle, value); err != nil {
				return refuse(fetchwire.CodeInvalidConfig, "Invalid value %s for configuration %s: %v", value, throttle, err)
			}
			return nil
		},
	}
}

// alterableMirror returns the rules of a mirror. Of a declared one only the throttle may be altered.
func (a *Agent) alterableMirror(name string) (alterRules, error) {
	rules := alterRules{kind: mirrorKeyRule}
	switch {
	case a.declared[name] != nil:
		rules = throttleRules(resourceMirror, "mirror", throttleRateKey, fetchwire.ConfigTypeLong)
		rules.kind = func(key string) (int8, error) {
			kind, err := mirrorKeyRule(key)
			if err == nil && key != throttleRateKey {
				err = refuse(fetchwire.CodePolicyViolation, "mirror %s is declared in agent.properties: change mirror.%s.%s "+
					"there and restart the agent", name, name, key)
			}
			return kind, err
		}
		return rules, nil
	case !a.created(name):
		return rules, unknownMirror(name)
	}
	rules.inForce = func(key string) string {
		shown, ok := shownKeys[key]
		cfg, err := a.mirrorConfig(name)
		if !ok || err != nil {
			return ""
		}
		return shown.show(&cfg)
	}
	rules.check = func(next map[string]string, changed map[string]bool) error { return a.checkMirror(name, next, changed) }
	return rules, nil
}

// mirrorKeyRule returns the type of a mirror's key.
func mirrorKeyRule(key string) (int8, error) {
	kind, ok := mirrorKeyKind(key)
	if !ok {
		return 0, refuse(fetchwire.CodeInvalidConfig, "%v: %s; the nearest is %s", errUnknownKey, key,
			nearestKey(key, knownMirrorKeys()))
	}
	return kind, nil
}

// checkMirror refuses a configuration that a created mirror cannot have.
func (a *Agent) checkMirror(name string, next map[string]string, changed map[string]bool) error {
	cfg, err := a.cfg.mirror(name, next)
	if err != nil {
		return refuse(fetchwire.CodeInvalidConfig, "%v", err)
	}
	if rate, ok := next[throttleRateKey]; ok {
		if _, err := checkThrottle(resourceMirror, throttleRateKey, rate); err != nil {
			return refuse(fetchwire.CodeInvalidConfig, "Invalid value %s for configuration %s: %v", rate, throttleRateKey, err)
		}
	}
	const policyKey = "mirror.leader.epoch.policy"
	policy := a.states.mirror(name).epochPolicy
	if changed[policyKey] && policy != EpochPolicyDefault && cfg.EpochPolicyChosen && cfg.EpochPolicy != policy {
		return refuse(fetchwire.CodeInvalidConfig, "%s is %s since mirror %s was created and cannot become %s", policyKey,
			policy, name, cfg.EpochPolicy)
	}
	return nil
}
