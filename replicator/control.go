package replicator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// sourceTimeout bounds how long a request waits for a source's answers.
const sourceTimeout = 15 * time.Second

// refuse is the answer that nothing was done, and why.
func refuse(code int16, format string, args ...any) error {
	return fetchwire.KafkaError{Code: code, Message: fmt.Sprintf(format, args...)}
}

func unknownMirror(name string) error {
	return refuse(fetchwire.CodeUnknownMirror, "there is no mirror %s", name)
}

// notStored says that a change could not be made durable.
func notStored(err error) error {
	return refuse(fetchwire.CodeKafkaStorageError, "nothing was changed: it could not be stored: %v", err)
}

// askSource asks a mirror's source, on a connection of its own, which cluster it is and for topics: those of known and
// those that pass the patterns of cfg.
func (a *Agent) askSource(ctx context.Context, cfg *MirrorConfig, known map[string]bool) (*refresh, error) {
	filter, err := newTopicFilter(cfg.TopicsInclude, cfg.TopicsExclude)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	s := &source{
		cfg: cfg.Client, clientID: fmt.Sprintf("broker-%d-admin-mirror-%s", a.cfg.NodeID, cfg.Name), logger: a.logger,
	}
	defer s.disconnect()
	out := &refresh{}
	if err = s.connect(ctx); err == nil {
		err = s.metadata(ctx, &sourceAsk{known: known, filter: filter}, out)
	}
	switch {
	case err != nil && unauthenticated(err):
		return nil, refuse(fetchwire.CodeSaslAuthenticationFailed, "the source of mirror %s refuses us: %v", cfg.Name, err)
	case err != nil:
		return nil, refuse(fetchwire.CodeBrokerNotAvailable, "the source of mirror %s could not be asked, nothing was "+
			"changed: %v", cfg.Name, err)
	}
	return out, nil
}

// createMirror makes a mirror of a source that answers now: its cluster id is fixed with it.
func (a *Agent) createMirror(ctx context.Context, name string, props map[string]string) error {
	if err := checkMirrorName(name); err != nil {
		return refuse(fetchwire.CodeInvalidMirrorName, "%q: %v", name, err)
	}
	cfg, err := a.newMirrorConfig(name, props)
	if err != nil {
		return err
	}
	if err := a.free(name); err != nil {
		return err
	}
	answer, err := a.askSource(ctx, &cfg, nil)
	if err != nil {
		return err
	}
	if answer.clusterID == "" {
		return refuse(fetchwire.CodeInvalidRequest, "the source of mirror %s names no cluster id", name)
	}
	a.control.Lock()
	defer a.control.Unlock()
	if err := a.free(name); err != nil { // another request was faster
		return err
	}
	if err := a.states.append(StateRecord{
		Type: recordMirrorSource, Mirror: name, SourceClusterID: answer.clusterID, EpochPolicy: cfg.EpochPolicy,
	}); err != nil {
		return notStored(err)
	}
	m, err := newMirror(a, cfg)
	if err != nil {
		return refuse(fetchwire.CodeInvalidConfig, "%v", err)
	}
	if err := a.change(a.creation(name, props)); err != nil {
		return notStored(err)
	}
	a.logger.Info("mirror created", slog.String("mirror", name), slog.String("source_cluster_id", answer.clusterID),
		slog.Any("source", cfg.Client), slog.String("epoch_policy", cfg.EpochPolicy.String()))
	if err := a.addMirror(m); err != nil {
		return refuse(fetchwire.CodeBrokerNotAvailable, "%v: it is created and will run at the next start", err)
	}
	return nil
}

// creation returns what makes a mirror. What is left of one that was declared under that name goes with it.
func (a *Agent) creation(name string, props map[string]string) []MetadataRecord {
	var records []MetadataRecord
	for _, topic := range a.metadata.names(resourceTopic) {
		r := resource{kind: resourceTopic, name: topic}
		if holder, _ := a.metadata.value(r, keyMirrorName); parseBinding(holder).mirror == name {
			records = append(records, configRecord(r, keyMirrorName, nil))
		}
	}
	r := resource{kind: resourceMirror, name: name}
	for key := range a.metadata.config(r) {
		if _, given := props[key]; !given {
			records = append(records, configRecord(r, key, nil))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(props)) {
		value := props[key]
		records = append(records, configRecord(r, key, &value))
	}
	return records
}

// newMirrorConfig reads the configuration of a mirror to be made.
func (a *Agent) newMirrorConfig(name string, props map[string]string) (MirrorConfig, error) {
	if strings.TrimSpace(props[keyBootstrap]) == "" {
		return MirrorConfig{}, refuse(fetchwire.CodeInvalidRequest, "bootstrap.servers is required for mirror %s", name)
	}
	for key := range props {
		if strings.HasSuffix(key, overlayAdded) || strings.HasSuffix(key, overlayRemoved) || key == keyDeleting {
			return MirrorConfig{}, refuse(fetchwire.CodeInvalidConfig, "%v: %s", errUnknownKey, key)
		}
	}
	cfg, err := a.cfg.mirror(name, props)
	if err != nil {
		return cfg, refuse(fetchwire.CodeInvalidConfig, "%v", err)
	}
	return cfg, nil
}

// free refuses the name of a mirror that exists.
func (a *Agent) free(name string) error {
	switch {
	case a.declared[name] != nil:
		return refuse(fetchwire.CodeDuplicateResource, "mirror %s is declared in the agent's configuration", name)
	case a.created(name):
		return refuse(fetchwire.CodeDuplicateResource, "mirror %s exists", name)
	}
	if _, deleting := a.metadata.value(resource{kind: resourceMirror, name: name}, keyDeleting); deleting {
		return refuse(fetchwire.CodeDuplicateResource, "mirror %s is being deleted", name)
	}
	return nil
}

// deleteMirror deletes a mirror whose topics are all STOPPED: what is known of it goes, the copies stay.
func (a *Agent) deleteMirror(name string) error {
	m, err := a.unbind(name)
	if err != nil {
		return err
	}
	a.removeMirror(m)
	if err := a.forget(name); err != nil {
		return notStored(err)
	}
	return nil
}

// unbind checks that a mirror may be deleted, and removes its configuration and its bindings in one step.
func (a *Agent) unbind(name string) (*mirror, error) {
	a.control.Lock()
	defer a.control.Unlock()
	m := a.mirror(name)
	switch {
	case m == nil:
		return nil, unknownMirror(name)
	case a.declared[name] != nil:
		return nil, refuse(fetchwire.CodeInvalidRequest, "mirror %s is declared in the agent's configuration: take it out "+
			"there and restart the agent", name)
	}
	held := a.bindingsOf(name)
	var records []MetadataRecord
	for _, topic := range slices.Sorted(maps.Keys(held)) {
		if held[topic] != WantedStopped {
			return nil, refuse(fetchwire.CodeMirrorNotEmpty, "topic %s is %s: stop it first", topic, held[topic])
		}
		if p := m.first(topic, func(s State) bool { return s != StateStopped }); p != nil {
			return nil, refuse(fetchwire.CodeMirrorNotEmpty, "%s is still %s", p.tp, p.state())
		}
		records = append(records, bindRecord(topic, binding{}))
	}
	r := resource{kind: resourceMirror, name: name}
	for key := range a.metadata.config(r) {
		records = append(records, configRecord(r, key, nil))
	}
	yes := "true"
	records = append(records, configRecord(r, keyDeleting, &yes))
	if err := a.change(records); err != nil {
		return nil, notStored(err)
	}
	var dirs []string
	for _, p := range m.listed() {
		if log := p.stats.log.Load(); log != nil && p.want() != WantedNone {
			dirs = append(dirs, log.Dir())
		}
	}
	a.logger.Info("mirror deleted; the copies are kept", slog.String("mirror", name), slog.Any("topics",
		slices.Sorted(maps.Keys(held))), slog.Any("directories", dirs))
	return m, nil
}

// forget writes the tombstones of a deleted mirror's states, and then takes the mark away that this is to be done.
func (a *Agent) forget(name string) error {
	if err := a.states.append(
		StateRecord{Type: recordPartitionState, Mirror: name, Tombstone: true},
		StateRecord{Type: recordLastMirrorEpochs, Mirror: name, Tombstone: true},
	); err != nil {
		return err
	}
	return a.change([]MetadataRecord{configRecord(resource{kind: resourceMirror, name: name}, keyDeleting, nil)})
}

// listed returns the partitions of the mirror. Any goroutine.
func (m *mirror) listed() []*partition {
	m.board.mu.Lock()
	defer m.board.mu.Unlock()
	return slices.Clone(m.board.parts)
}

// first returns a partition of a topic in such a state, nil if there is none. Any goroutine.
func (m *mirror) first(topic string, such func(State) bool) *partition {
	for _, p := range m.listed() {
		if p.tp.Topic == topic && such(p.state()) {
			return p
		}
	}
	return nil
}

// topicResults collects the answers for the topics of a request, in the order in which they were given.
type topicResults struct {
	list []fetchwire.MirrorTopicResult
	seen map[string]bool
}

// once reports whether a topic is named for the first time.
func (t *topicResults) once(topic string) bool {
	if t.seen == nil {
		t.seen = map[string]bool{}
	}
	again := t.seen[topic]
	t.seen[topic] = true
	return !again
}

func (t *topicResults) add(topic string, err error) {
	r := fetchwire.MirrorTopicResult{Name: topic}
	var code fetchwire.KafkaError
	switch {
	case errors.As(err, &code):
		r.ErrorCode, r.ErrorMessage = code.Code, &code.Message
	case err != nil:
		words := err.Error()
		r.ErrorCode, r.ErrorMessage = fetchwire.CodeUnknownServerError, &words
	}
	t.list = append(t.list, r)
}

// sameTopic refuses a topic id that is not the one of the copy we hold.
func (a *Agent) sameTopic(topic, cluster string, id [16]byte) error {
	if id == ([16]byte{}) {
		return nil
	}
	for _, bound := range a.boundTo(topic, cluster) {
		if bound != segment.TopicID(id) {
			return refuse(fetchwire.CodeInconsistentTopicID, "topic %s has id %s, the copy here is of id %s: move its "+
				"directories away to mirror the new topic", topic, segment.TopicID(id), bound)
		}
	}
	return nil
}
