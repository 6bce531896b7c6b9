package replicator

import (
	"log/slog"
	"maps"
	"slices"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// readMirrorStates tells the stored states of a mirror's partitions. No topics are all topics, no partitions all of the
// topic's.
func (c *client) readMirrorStates(req *fetchwire.ReadMirrorStatesRequest) *fetchwire.ReadMirrorStatesResponse {
	a := c.server.agent
	resp := &fetchwire.ReadMirrorStatesResponse{}
	if !a.exists(req.MirrorName) {
		resp.MirrorResult = mirrorResult(unknownMirror(req.MirrorName))
		return resp
	}
	stored := a.states.mirror(req.MirrorName).partitions
	all := map[string][]int32{}
	for _, tp := range slices.SortedFunc(maps.Keys(stored), compareTP) {
		all[tp.Topic] = append(all[tp.Topic], tp.Partition)
	}
	topics := req.Topics
	if len(topics) == 0 {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			topics = append(topics, fetchwire.ReadMirrorStatesTopic{Name: name})
		}
	}
	for _, t := range topics {
		out := fetchwire.MirrorStatesTopic{Name: t.Name}
		partitions := t.Partitions
		if len(partitions) == 0 {
			partitions = all[t.Name]
		}
		for _, index := range partitions {
			out.Partitions = append(out.Partitions,
				storedState(index, stored[segment.TopicPartition{Topic: t.Name, Partition: index}]))
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func storedState(index int32, p *partitionRecord) fetchwire.MirrorPartitionState {
	out := fetchwire.MirrorPartitionState{
		PartitionIndex: index, LastMirrorEpoch: -1, State: int8(StateUnknown), LastMirroredEnd: -1,
	}
	if p == nil {
		out.ErrorCode = fetchwire.CodeUnknownTopicOrPartition
		return out
	}
	out.State = int8(p.state)
	if p.epoch != nil {
		out.LastMirrorEpoch, out.LastMirroredEnd = p.epoch.Epoch, p.epoch.EndOffset
	}
	return out
}

// writeMirrorStates stores states, last mirror epochs and last mirrored ends, and that topics are wanted stopped. What
// this agent runs itself goes on towards what is wanted of its topic.
func (c *client) writeMirrorStates(req *fetchwire.WriteMirrorStatesRequest) *fetchwire.WriteMirrorStatesResponse {
	topics, err := c.server.agent.writeStates(req)
	return &fetchwire.WriteMirrorStatesResponse{MirrorResult: mirrorResult(err), Topics: topics}
}

func (a *Agent) writeStates(req *fetchwire.WriteMirrorStatesRequest) ([]fetchwire.MirrorPartitionsResult, error) {
	change, err := a.beginChange(req.MirrorName)
	if err != nil {
		return nil, err
	}
	defer a.control.Unlock()
	for _, topic := range req.StoppedTopics {
		if err := change.holds(&fetchwire.MirrorTopic{TopicName: topic}); err != nil {
			return nil, err
		}
		if change.results.once(topic) {
			change.set(topic, WantedStopped)
		}
	}
	w := stateWrite{mirror: req.MirrorName, stored: a.states.mirror(req.MirrorName).partitions}
	for i := range req.Topics {
		w.topic(&req.Topics[i])
	}
	if err := a.states.append(w.records...); err != nil {
		return nil, notStored(err)
	}
	if _, err := change.end("stopped"); err != nil {
		return nil, err
	}
	return w.results, nil
}

// stateWrite collects what a WriteMirrorStates changes.
type stateWrite struct {
	mirror  string
	stored  map[segment.TopicPartition]*partitionRecord
	records []StateRecord
	results []fetchwire.MirrorPartitionsResult
}

func (w *stateWrite) topic(t *fetchwire.MirrorStatesTopic) {
	out := fetchwire.MirrorPartitionsResult{Name: t.Name}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		out.Partitions = append(out.Partitions,
			fetchwire.MirrorPartitionResult{PartitionIndex: p.PartitionIndex, ErrorCode: w.partition(t.Name, p)})
	}
	w.results = append(w.results, out)
}

// partition takes up one partition and returns a code. The state must be the stored one, or one it may move to.
func (w *stateWrite) partition(topic string, p *fetchwire.MirrorPartitionState) int16 {
	stored := w.stored[segment.TopicPartition{Topic: topic, Partition: p.PartitionIndex}]
	if stored == nil {
		return fetchwire.CodeUnknownTopicOrPartition
	}
	if p.LastMirrorEpoch < -1 || p.LastMirroredEnd < -1 || !stored.state.CanMoveTo(State(p.State)) {
		return fetchwire.CodeInvalidRequest
	}
	if State(p.State) != stored.state {
		stored.state, stored.cause, stored.attempts, stored.text = State(p.State), CauseNone, 0, ""
		w.records = append(w.records,
			stored.stateRecord(w.mirror, segment.TopicPartition{Topic: topic, Partition: p.PartitionIndex}))
	}
	if p.LastMirrorEpoch >= 0 {
		w.records = append(w.records, StateRecord{Type: recordLastMirrorEpochs, Mirror: w.mirror, Epochs: []LastMirrorEpoch{{
			Topic: topic, Partition: p.PartitionIndex, Epoch: p.LastMirrorEpoch, EndOffset: p.LastMirroredEnd,
		}}})
	}
	return fetchwire.CodeNone
}

// bumpLeaderEpochs raises the leader epochs that clients are told, where they are lower: all of a topic's, or none.
func (c *client) bumpLeaderEpochs(req *fetchwire.BumpLeaderEpochsRequest) *fetchwire.BumpLeaderEpochsResponse {
	resp := &fetchwire.BumpLeaderEpochsResponse{}
	for i := range req.Topics {
		resp.Topics = append(resp.Topics, c.bumpTopic(&req.Topics[i]))
	}
	c.server.agent.served.notify() // so that consumers hear of it at once
	return resp
}

func (c *client) bumpTopic(t *fetchwire.BumpLeaderEpochsTopic) fetchwire.MirrorPartitionsResult {
	out := fetchwire.MirrorPartitionsResult{Name: c.catalog().name(t.TopicID)}
	var records []MetadataRecord
	for _, p := range t.Partitions {
		code, higher := c.bumpable(out.Name, t.TopicID, p)
		if higher {
			records = append(records, MetadataRecord{PartitionChange: &PartitionChangeRecord{
				PartitionID: p.PartitionIndex, TopicID: t.TopicID, MinLeaderEpoch: p.MinLeaderEpoch,
			}})
		}
		out.Partitions = append(out.Partitions,
			fetchwire.MirrorPartitionResult{PartitionIndex: p.PartitionIndex, ErrorCode: code})
	}
	if len(records) == 0 {
		return out
	}
	if err := c.server.agent.metadata.append(records...); err != nil {
		c.server.logger.Error("leader epochs could not be raised", topicAttr(segment.TopicPartition{Topic: out.Name}),
			slog.Any("err", err))
		for i := range out.Partitions {
			if p := &out.Partitions[i]; p.ErrorCode == fetchwire.CodeNone {
				p.ErrorCode = fetchwire.CodeKafkaStorageError
			}
		}
	}
	return out
}

// bumpable returns why a partition's epoch is not raised, and whether it is to be.
func (c *client) bumpable(topic string, id [16]byte, p fetchwire.BumpLeaderEpoch) (code int16, higher bool) {
	if topic == "" {
		return fetchwire.CodeUnknownTopicID, false
	}
	log, code := c.catalog().log(topic, p.PartitionIndex)
	switch {
	case code != fetchwire.CodeNone:
		return code, false
	case sourceTopicID(log) != id:
		return fetchwire.CodeInconsistentTopicID, false
	case p.MinLeaderEpoch < -1:
		return fetchwire.CodeInvalidRequest, false
	}
	return fetchwire.CodeNone, p.MinLeaderEpoch > c.catalog().raisedEpoch(log)
}
