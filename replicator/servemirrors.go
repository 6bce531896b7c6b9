package replicator

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// mirrorResult is how an answer begins that says err, or that all went well.
func mirrorResult(err error) fetchwire.MirrorResult {
	var code fetchwire.KafkaError
	switch {
	case err == nil:
		return fetchwire.MirrorResult{}
	case errors.As(err, &code):
		return fetchwire.MirrorResult{ErrorCode: code.Code, ErrorMessage: &code.Message}
	}
	words := err.Error()
	return fetchwire.MirrorResult{ErrorCode: fetchwire.CodeUnknownServerError, ErrorMessage: &words}
}

// topicsResult answers a request about topics. The code of the whole is the first topic's.
func topicsResult(mirror string, topics []fetchwire.MirrorTopicResult, err error) fetchwire.MirrorTopicsResult {
	out := fetchwire.MirrorTopicsResult{MirrorResult: mirrorResult(err), MirrorName: mirror, Topics: topics}
	if err == nil && len(topics) > 0 {
		out.ErrorCode, out.ErrorMessage = topics[0].ErrorCode, topics[0].ErrorMessage
	}
	return out
}

func (c *client) createMirror(req *fetchwire.CreateMirrorRequest) *fetchwire.CreateMirrorResponse {
	props, err := map[string]string{}, error(nil)
	for _, kv := range req.Config {
		if _, twice := props[kv.Name]; twice {
			err = refuse(fetchwire.CodeInvalidRequest, "%s is given twice", kv.Name)
		}
		if kv.Value != nil {
			props[kv.Name] = *kv.Value
		}
	}
	if err == nil {
		err = c.server.agent.createMirror(c.server.ctx, req.MirrorName, props)
	}
	return &fetchwire.CreateMirrorResponse{MirrorResult: mirrorResult(err)}
}

func (c *client) deleteMirror(req *fetchwire.DeleteMirrorRequest) *fetchwire.DeleteMirrorResponse {
	err := c.server.agent.deleteMirror(req.MirrorName)
	return &fetchwire.DeleteMirrorResponse{MirrorResult: mirrorResult(err)}
}

func (c *client) startMirrorTopics(req *fetchwire.StartMirrorTopicsRequest) *fetchwire.StartMirrorTopicsResponse {
	topics, err := c.server.agent.startTopics(c.server.ctx, req)
	return &fetchwire.StartMirrorTopicsResponse{MirrorTopicsResult: topicsResult(req.MirrorName, topics, err)}
}

func (c *client) stopMirrorTopics(req *fetchwire.StopMirrorTopicsRequest) *fetchwire.StopMirrorTopicsResponse {
	c.named(req.Topics)
	topics, err := c.server.agent.stopTopics(req)
	return &fetchwire.StopMirrorTopicsResponse{MirrorTopicsResult: topicsResult(req.MirrorName, topics, err)}
}

func (c *client) pauseMirrorTopics(req *fetchwire.PauseMirrorTopicsRequest) *fetchwire.PauseMirrorTopicsResponse {
	c.named(req.Topics)
	topics, err := c.server.agent.pauseTopics(req.MirrorName, req.Topics)
	return &fetchwire.PauseMirrorTopicsResponse{MirrorTopicsResult: topicsResult(req.MirrorName, topics, err)}
}

func (c *client) resumeMirrorTopics(req *fetchwire.ResumeMirrorTopicsRequest) *fetchwire.ResumeMirrorTopicsResponse {
	c.named(req.Topics)
	topics, err := c.server.agent.resumeTopics(req.MirrorName, req.Topics)
	return &fetchwire.ResumeMirrorTopicsResponse{MirrorTopicsResult: topicsResult(req.MirrorName, topics, err)}
}

// named fills in the names of topics that are given by id alone.
func (c *client) named(topics []fetchwire.MirrorTopic) {
	for i := range topics {
		if t := &topics[i]; t.TopicName == "" {
			t.TopicName = c.catalog().name(t.TopicID)
		}
	}
}

// listMirrors lists the mirrors of this agent. By offering it an agent is told from a broker.
func (c *client) listMirrors(*fetchwire.ListMirrorsRequest) *fetchwire.ListMirrorsResponse {
	resp := &fetchwire.ListMirrorsResponse{}
	for _, m := range c.server.agent.allMirrors() {
		m.board.mu.Lock()
		l := fetchwire.ListedMirror{
			MirrorName: m.name, SourceBootstrap: strings.Join(m.board.bootstrap, ","), SourceClusterID: m.board.clusterID,
		}
		m.board.mu.Unlock()
		l.TopicCount = int32(len(c.server.agent.bindingsOf(m.name)))
		resp.Mirrors = append(resp.Mirrors, l)
	}
	return resp
}

// describeMirrors tells what this agent holds of mirrors; one that does not exist has an error of its own.
func (c *client) describeMirrors(req *fetchwire.DescribeMirrorsRequest) *fetchwire.DescribeMirrorsResponse {
	resp := &fetchwire.DescribeMirrorsResponse{}
	names := req.MirrorNames
	if len(names) == 0 {
		for _, m := range c.server.agent.allMirrors() {
			names = append(names, m.name)
		}
	}
	for _, name := range names {
		if m := c.server.agent.mirror(name); m != nil {
			resp.Mirrors = append(resp.Mirrors, m.describe())
			continue
		}
		resp.Mirrors = append(resp.Mirrors, fetchwire.DescribedMirror{
			ErrorCode: fetchwire.CodeUnknownMirror, MirrorName: name, AuthorizedOps: fetchwire.NoAuthorizedOperations,
		})
	}
	return resp
}

// describe returns the mirror's topics, in order of name; one whose partitions are not known yet has none.
func (m *mirror) describe() fetchwire.DescribedMirror {
	out := fetchwire.DescribedMirror{
		MirrorName: m.name, AuthorizedOps: fetchwire.NoAuthorizedOperations, Replica: m.agent.cfg.Role == roleReplica,
	}
	byTopic, chains := map[string][]fetchwire.DescribedMirrorPartition{}, map[string][]string{}
	for topic := range m.agent.bindingsOf(m.name) {
		byTopic[topic] = nil
	}
	stored := m.agent.states.mirror(m.name).partitions
	parts := m.listed()
	slices.SortFunc(parts, func(a, b *partition) int { return compareTP(a.tp, b.tp) })
	for _, p := range parts {
		if p.state() != StateStopped {
			chains[p.tp.Topic] = m.chainOf(p.topic)
		}
		byTopic[p.tp.Topic] = append(byTopic[p.tp.Topic], p.describeMirrored(stored[p.tp]))
	}
	for _, topic := range slices.Sorted(maps.Keys(byTopic)) {
		out.Topics = append(out.Topics, fetchwire.DescribedMirrorTopic{
			TopicName: topic, Partitions: byTopic[topic], SourceChain: chains[topic],
		})
	}
	return out
}

// describeMirrored tells of a partition what DescribeMirrors does. What the source holds is told while it is mirrored:
// an older number would be a lag that is none.
func (p *partition) describeMirrored(stored *partitionRecord) fetchwire.DescribedMirrorPartition {
	state := p.state()
	out := fetchwire.NewDescribedMirrorPartition(p.tp.Partition, state.String())
	if log := p.stats.log.Load(); log != nil && state != StatePaused && state != StateStopped {
		out.DestinationOffset = log.LogEndOffset()
	}
	if source := p.stats.sourceOffset.Load(); source >= 0 && state == StateMirroring && out.DestinationOffset >= 0 {
		out.SourceOffset, out.Lag = source, max(0, source-out.DestinationOffset)
	}
	if stored != nil && stored.epoch != nil {
		out.LastMirrorEpoch, out.LastMirroredEnd = stored.epoch.Epoch, stored.epoch.EndOffset
	}
	if why := p.stats.failure.Load(); why != nil {
		words := p.mirror.agent.explain(p.mirror.name, p.tp, why)
		out.Cause, out.Attempts = &words, p.stats.attempts.Load()
	}
	return out
}

// explain says why a partition failed, and what resolves that.
func (a *Agent) explain(mirror string, tp segment.TopicPartition, why *failure) string {
	return why.cause.String() + ": " + why.text + "; " + why.cause.remedy(a.commands(mirror, tp.Topic))
}
