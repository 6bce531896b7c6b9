package replicator

import (
	"maps"
	"slices"
)

// binding returns who holds a topic. A mirror that does not exist any more, because its declaration was taken out of
// the configuration, holds nothing. Any goroutine.
func (a *Agent) binding(topic string) binding {
	holder, _ := a.metadata.value(resource{kind: resourceTopic, name: topic}, keyMirrorName)
	b := parseBinding(holder)
	if b.want != WantedNone && !a.exists(b.mirror) {
		return binding{}
	}
	return b
}

// mirrorsTopic reports whether a mirror of this agent holds the topic. Any goroutine.
func (a *Agent) mirrorsTopic(topic string) bool { return a.binding(topic).want != WantedNone }

// bindingsOf returns what is wanted of each topic that a mirror holds. Any goroutine.
func (a *Agent) bindingsOf(mirror string) map[string]Wanted {
	out := map[string]Wanted{}
	for _, topic := range a.metadata.names(resourceTopic) {
		if b := a.binding(topic); b.mirror == mirror && b.want != WantedNone {
			out[topic] = b.want
		}
	}
	return out
}

// exists reports whether a mirror of that name is declared or was created. Any goroutine.
func (a *Agent) exists(mirror string) bool {
	_, declared := a.declared[mirror]
	return declared || a.created(mirror)
}

// created reports whether a mirror was created by a request: it has an address then, a declared one's overlay never.
func (a *Agent) created(mirror string) bool {
	_, ok := a.metadata.value(resource{kind: resourceMirror, name: mirror}, keyBootstrap)
	return ok
}

// configRecord sets one key of a resource, or deletes it where value is nil.
func configRecord(r resource, key string, value *string) MetadataRecord {
	return MetadataRecord{Config: &ConfigRecord{ResourceType: r.kind, ResourceName: r.name, Name: key, Value: value}}
}

// bindRecord makes b the binding of a topic.
func bindRecord(topic string, b binding) MetadataRecord {
	return configRecord(resource{kind: resourceTopic, name: topic}, keyMirrorName, b.value())
}

// claim binds topics that nobody holds to a mirror, which found them by its patterns, and returns what each of topics
// is bound to then.
func (a *Agent) claim(mirror string, topics []string) (map[string]binding, error) {
	a.control.Lock()
	defer a.control.Unlock()
	out := map[string]binding{}
	var records []MetadataRecord
	for _, topic := range topics {
		b := a.binding(topic)
		if b.want == WantedNone {
			b = binding{mirror: mirror, want: WantedMirroring}
			records = append(records, bindRecord(topic, b))
		}
		out[topic] = b
	}
	return out, a.change(records)
}

// change makes records of the control plane durable, in order: those that belong together are far fewer than a batch
// holds, so that it takes several for many topics only, each of which stands for itself. control is held.
func (a *Agent) change(records []MetadataRecord) error {
	for chunk := range slices.Chunk(records, recordLogBatchRecords) {
		if err := a.metadata.append(chunk...); err != nil {
			return err
		}
	}
	return nil
}

// stopExcluded stops the topics of a mirror that its patterns exclude now.
func (a *Agent) stopExcluded(mirror string, filter topicFilter) ([]string, error) {
	a.control.Lock()
	defer a.control.Unlock()
	var stopped []string
	var records []MetadataRecord
	held := a.bindingsOf(mirror)
	for _, topic := range slices.Sorted(maps.Keys(held)) {
		if held[topic] != WantedStopped && filter.exclude.match(topic) {
			stopped = append(stopped, topic)
			records = append(records, bindRecord(topic, binding{mirror: mirror, want: WantedStopped}))
		}
	}
	return stopped, a.change(records)
}
