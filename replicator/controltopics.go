package replicator

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"segmirror/fetchwire"
)

// starting is one request to start topics.
type starting struct {
	m       *mirror
	req     *fetchwire.StartMirrorTopicsRequest
	found   map[string]*sourceTopic // what the source has
	filter  topicFilter             // the mirror's, with the patterns of the request
	asked   pattern                 // what the request includes
	results topicResults
	records []MetadataRecord
	started []string
}

// startTopics starts what a request names, and looks for what it includes from now on.
func (a *Agent) startTopics(ctx context.Context, req *fetchwire.StartMirrorTopicsRequest,
) ([]fetchwire.MirrorTopicResult, error) {
	s := &starting{m: a.mirror(req.MirrorName), req: req, found: map[string]*sourceTopic{}}
	if s.m == nil {
		return nil, unknownMirror(req.MirrorName)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	cfg, err := a.startedConfig(req)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for i := range req.Topics {
		known[req.Topics[i].TopicName] = true
	}
	answer, err := a.askSource(ctx, cfg, known)
	if err != nil {
		return nil, err
	}
	if id := s.m.cluster(); id != "" && answer.clusterID != id {
		return nil, refuse(fetchwire.CodeInconsistentClusterID, "mirror %s is of cluster %s, the source is now %s",
			req.MirrorName, id, answer.clusterID)
	}
	for i := range answer.topics {
		s.found[answer.topics[i].name] = &answer.topics[i]
	}
	a.control.Lock()
	defer a.control.Unlock()
	if err := a.start(s, answer.clusterID); err != nil {
		return nil, err
	}
	return s.results.list, nil
}

// check refuses what no mirror could start.
func (s *starting) check() error {
	if len(s.req.Topics)+len(s.req.IncludePatterns)+len(s.req.ExcludePatterns) == 0 {
		return refuse(fetchwire.CodeInvalidRequest, "neither a topic nor a pattern is named")
	}
	if err := checkPatterns(s.req.IncludePatterns, s.req.ExcludePatterns); err != nil {
		return refuse(fetchwire.CodeInvalidRequest, "%v", err)
	}
	for _, e := range s.req.IncludePatterns {
		if slices.Contains(s.req.ExcludePatterns, e) {
			return refuse(fetchwire.CodeInvalidRequest, "%q is to be included and excluded", e)
		}
	}
	var err error
	s.asked, err = newPattern(s.req.IncludePatterns)
	return err
}

// startedConfig returns the configuration that a mirror has with the patterns of a request.
func (a *Agent) startedConfig(req *fetchwire.StartMirrorTopicsRequest) (*MirrorConfig, error) {
	if !a.exists(req.MirrorName) {
		return nil, unknownMirror(req.MirrorName)
	}
	cfg, err := a.mirrorConfig(req.MirrorName)
	if err != nil {
		return nil, refuse(fetchwire.CodeInvalidConfig, "%v", err)
	}
	p := patternsOf(&cfg).start(req.IncludePatterns, req.ExcludePatterns)
	cfg.TopicsInclude, cfg.TopicsExclude = p.include, p.exclude
	return &cfg, nil
}

// start settles what becomes of every topic and stores it all in one step. control is held.
func (a *Agent) start(s *starting, cluster string) error {
	cfg, err := a.startedConfig(s.req) // as they are now
	if err != nil {
		return err
	}
	if s.filter, err = newTopicFilter(cfg.TopicsInclude, cfg.TopicsExclude); err != nil {
		return refuse(fetchwire.CodeInvalidRequest, "%v", err)
	}
	for i := range s.req.Topics {
		t := &s.req.Topics[i]
		if s.results.once(t.TopicName) {
			s.results.add(t.TopicName, a.startTopic(s, t, cluster))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.found)) {
		t := s.found[name]
		matches := t.code == fetchwire.CodeNone && len(t.partitions) > 0 && s.asked.match(name) && s.filter.match(name)
		if !matches || a.binding(name).want != WantedNone || !s.results.once(name) {
			continue
		}
		err := a.sameTopic(name, cluster, t.id)
		if err == nil {
			s.bind(name)
		}
		s.results.add(name, err)
	}
	a.startPatterns(s, cfg)
	if err := a.change(s.records); err != nil {
		return notStored(err)
	}
	if len(s.started) > 0 {
		s.m.inbox.put(event{started: s.started})
		a.logger.Info("topics started", slog.String("mirror", s.m.name), slog.Any("topics", s.started))
	}
	return nil
}

// bind notes that a topic is to be mirrored.
func (s *starting) bind(topic string) {
	s.started = append(s.started, topic)
	s.records = append(s.records, bindRecord(topic, binding{mirror: s.m.name, want: WantedMirroring}))
}

// startPatterns notes the patterns of a request, and the topics that these stop.
func (a *Agent) startPatterns(s *starting, cfg *MirrorConfig) {
	p := patternsOf(cfg)
	if a.declared[s.m.name] != nil { // what it holds by no pattern would be let go at the next start
		for _, topic := range s.started {
			if !s.filter.match(topic) {
				p.include = joined(p.include, []string{topic})
			}
		}
	}
	if now, err := a.mirrorConfig(s.m.name); err != nil || !patternsOf(&now).equal(p) {
		s.records = append(s.records, p.records(s.m.name, a.declared[s.m.name])...)
	}
	if len(s.req.ExcludePatterns) == 0 {
		return
	}
	for topic, want := range a.bindingsOf(s.m.name) {
		if want != WantedStopped && s.filter.exclude.match(topic) {
			s.records = append(s.records, bindRecord(topic, binding{mirror: s.m.name, want: WantedStopped}))
			a.logger.Info("topic is excluded now: it is stopped", slog.String("mirror", s.m.name), slog.String("topic", topic))
		}
	}
}

// startTopic starts one topic that a request names, or says why not.
func (a *Agent) startTopic(s *starting, t *fetchwire.StartMirrorTopic, cluster string) error {
	name := t.TopicName
	found := s.found[name]
	switch {
	case !legalTopic(name):
		return refuse(fetchwire.CodeInvalidTopic, "%q is no name of a topic", name)
	case name == stateTopic || name == metadataTopic:
		return refuse(fetchwire.CodeInvalidRequest, "topic %s is the agent's own", name)
	case s.filter.exclude.match(name):
		return refuse(fetchwire.CodeInvalidRequest, "topic %s is excluded by the patterns of mirror %s: %q", name, s.m.name,
			a.excludes(s, name))
	case found == nil:
		return refuse(fetchwire.CodeUnknownTopicOrPartition, "the source has no topic %s", name)
	case found.code != fetchwire.CodeNone:
		return refuse(found.code, "the source says of topic %s: %s", name, fetchwire.ErrorName(found.code))
	case t.TopicID != [16]byte{} && t.TopicID != found.id:
		return refuse(fetchwire.CodeInconsistentTopicID, "topic %s has id %s at the source", name, found.id)
	}
	if err := a.sameTopic(name, cluster, found.id); err != nil {
		return err
	}
	b := a.binding(name)
	switch {
	case b.want == WantedNone:
	case b.mirror != s.m.name:
		other := a.mirror(b.mirror)
		if b.want != WantedStopped || other != nil && other.first(name, notStopped) != nil {
			return refuse(fetchwire.CodeTopicAlreadyInMirror, "mirror %s holds topic %s", b.mirror, name)
		}
	case b.want == WantedPaused:
		return refuse(fetchwire.CodeMirrorTopicAlreadyPaused, "topic %s is paused: resume it", name)
	case b.want == WantedStopped:
		if p := s.m.first(name, notStopped); p != nil {
			return refuse(fetchwire.CodeMirrorTopicBeingStopped, "%s is still %s", p.tp, p.state())
		}
	default: // mirrored already: begin again with what failed
		if s.m.first(name, func(state State) bool { return state == StateFailed }) == nil {
			return refuse(fetchwire.CodeTopicAlreadyInMirror, "topic %s is mirrored already", name)
		}
		s.started = append(s.started, name)
		return nil
	}
	s.bind(name)
	return nil
}

func notStopped(s State) bool { return s != StateStopped }

// excludes returns the entries of the exclude list that match a topic.
func (a *Agent) excludes(s *starting, topic string) (entries []string) {
	cfg, err := a.startedConfig(s.req)
	if err != nil {
		return nil
	}
	for _, e := range cfg.TopicsExclude {
		if p, err := newPattern([]string{e}); err == nil && p.match(topic) {
			entries = append(entries, e)
		}
	}
	return entries
}

// stopTopics stops what a request names, and what its patterns match; these find no more topics then.
func (a *Agent) stopTopics(req *fetchwire.StopMirrorTopicsRequest) ([]fetchwire.MirrorTopicResult, error) {
	if len(req.Topics)+len(req.Patterns) == 0 {
		return nil, refuse(fetchwire.CodeInvalidRequest, "neither a topic nor a pattern is named")
	}
	if err := checkPatterns(req.Patterns); err != nil {
		return nil, refuse(fetchwire.CodeInvalidRequest, "%v", err)
	}
	asked, err := newPattern(req.Patterns)
	if err != nil {
		return nil, refuse(fetchwire.CodeInvalidRequest, "%v", err)
	}
	c, err := a.beginChange(req.MirrorName)
	if err != nil {
		return nil, err
	}
	defer a.control.Unlock()
	c.each(req.Topics, WantedStopped, func(topic string, want Wanted) error {
		if want == WantedStopped {
			return refuse(fetchwire.CodeTopicNotInMirror, "topic %s is stopped already", topic)
		}
		return nil
	})
	for _, topic := range slices.Sorted(maps.Keys(c.held)) {
		if c.held[topic] != WantedStopped && asked.match(topic) && c.results.once(topic) {
			c.set(topic, WantedStopped)
			c.results.add(topic, nil)
		}
	}
	if len(req.Patterns) > 0 {
		cfg, err := a.mirrorConfig(req.MirrorName)
		if err != nil {
			return nil, refuse(fetchwire.CodeInvalidConfig, "%v", err)
		}
		if p := patternsOf(&cfg).stop(req.Patterns); !p.equal(patternsOf(&cfg)) {
			c.records = append(c.records, p.records(req.MirrorName, a.declared[req.MirrorName])...)
		}
	}
	return c.end("stopped")
}

// pauseTopics pauses topics all of whose partitions are MIRRORING.
func (a *Agent) pauseTopics(mirror string, topics []fetchwire.MirrorTopic) ([]fetchwire.MirrorTopicResult, error) {
	c, err := a.beginChange(mirror)
	if err != nil {
		return nil, err
	}
	defer a.control.Unlock()
	c.each(topics, WantedPaused, func(topic string, want Wanted) error {
		if want == WantedStopped {
			return refuse(fetchwire.CodeMirrorTopicBeingStopped, "topic %s is stopped", topic)
		}
		if want == WantedPaused {
			return nil
		}
		if p := c.m.first(topic, func(s State) bool { return s != StateMirroring }); p != nil {
			return refuse(fetchwire.CodeInvalidRequest, "%s is %s: only what is MIRRORING can be paused", p.tp, p.state())
		}
		if c.m.first(topic, func(State) bool { return true }) == nil {
			return refuse(fetchwire.CodeInvalidRequest, "topic %s is not MIRRORING yet", topic)
		}
		return nil
	})
	return c.end("paused")
}

// resumeTopics goes on with topics that are paused.
func (a *Agent) resumeTopics(mirror string, topics []fetchwire.MirrorTopic) ([]fetchwire.MirrorTopicResult, error) {
	c, err := a.beginChange(mirror)
	if err != nil {
		return nil, err
	}
	defer a.control.Unlock()
	c.each(topics, WantedMirroring, func(topic string, want Wanted) error {
		if want != WantedPaused {
			return refuse(fetchwire.CodeMirrorTopicNotPaused, "topic %s is not paused, it is wanted %s", topic, want)
		}
		return nil
	})
	return c.end("resumed")
}

// wantedChange is one request to change what is wanted of topics that a mirror holds.
type wantedChange struct {
	agent   *Agent
	m       *mirror
	held    map[string]Wanted
	results topicResults
	records []MetadataRecord
	changed []string
}

// beginChange takes control, which the caller gives back where there is no error.
func (a *Agent) beginChange(mirror string) (*wantedChange, error) {
	a.control.Lock()
	m := a.mirror(mirror)
	if m == nil || !a.exists(mirror) {
		a.control.Unlock()
		return nil, unknownMirror(mirror)
	}
	return &wantedChange{agent: a, m: m, held: a.bindingsOf(mirror)}, nil
}

// each answers for the topics that a request names: next is wanted of those that check, told what is wanted now, has
// nothing against.
func (c *wantedChange) each(topics []fetchwire.MirrorTopic, next Wanted, check func(string, Wanted) error) {
	for i := range topics {
		t := &topics[i]
		if !c.results.once(t.TopicName) {
			continue
		}
		err := c.holds(t)
		if err == nil {
			err = check(t.TopicName, c.held[t.TopicName])
		}
		if err == nil {
			c.set(t.TopicName, next)
		}
		c.results.add(t.TopicName, err)
	}
}

// holds refuses a topic that the mirror does not hold.
func (c *wantedChange) holds(t *fetchwire.MirrorTopic) error {
	if _, ok := c.held[t.TopicName]; ok {
		return c.agent.sameTopic(t.TopicName, c.m.cluster(), t.TopicID)
	}
	if b := c.agent.binding(t.TopicName); b.want != WantedNone {
		return refuse(fetchwire.CodeTopicNotInMirror, "mirror %s holds topic %s", b.mirror, t.TopicName)
	}
	return refuse(fetchwire.CodeUnknownTopicOrPartition, "no mirror holds topic %s", t.TopicName)
}

func (c *wantedChange) set(topic string, next Wanted) {
	if c.held[topic] == next {
		return
	}
	c.changed = append(c.changed, topic)
	c.records = append(c.records, bindRecord(topic, binding{mirror: c.m.name, want: next}))
}

// end stores everything in one step.
func (c *wantedChange) end(what string) ([]fetchwire.MirrorTopicResult, error) {
	if err := c.agent.change(c.records); err != nil {
		return nil, notStored(err)
	}
	if len(c.changed) > 0 {
		c.agent.logger.Info("topics "+what, slog.String("mirror", c.m.name), slog.Any("topics", c.changed))
	}
	return c.results.list, nil
}

// cluster returns the id of the source cluster, "" until it is known. Any goroutine.
func (m *mirror) cluster() string {
	m.board.mu.Lock()
	defer m.board.mu.Unlock()
	return m.board.clusterID
}
