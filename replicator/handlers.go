package replicator

import (
	"fmt"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// mirrorClientMark stands in the client id of every mirror's fetcher: those speak in epochs of the source.
const mirrorClientMark = "-mirror-"

// apis lists what the agent answers.
func (s *server) apis() map[int16]handler {
	return map[int16]handler{
		fetchwire.KeyCreateMirror:            handle((*client).createMirror),
		fetchwire.KeyStartMirrorTopics:       handle((*client).startMirrorTopics),
		fetchwire.KeyStopMirrorTopics:        handle((*client).stopMirrorTopics),
		fetchwire.KeyPauseMirrorTopics:       handle((*client).pauseMirrorTopics),
		fetchwire.KeyResumeMirrorTopics:      handle((*client).resumeMirrorTopics),
		fetchwire.KeyDeleteMirror:            handle((*client).deleteMirror),
		fetchwire.KeyListMirrors:             handle((*client).listMirrors),
		fetchwire.KeyDescribeMirrors:         handle((*client).describeMirrors),
		fetchwire.KeyApiVersions:             handle((*client).apiVersions),
		fetchwire.KeyMetadata:                handle((*client).metadata),
		fetchwire.KeyDescribeCluster:         handle((*client).describeCluster),
		fetchwire.KeyFindCoordinator:         handle((*client).findCoordinator),
		fetchwire.KeyListOffsets:             handle((*client).listOffsets),
		fetchwire.KeyOffsetForLeaderEpoch:    handle((*client).leaderEpochs),
		fetchwire.KeyDescribeConfigs:         handle((*client).describeConfigs),
		fetchwire.KeyIncrementalAlterConfigs: handle((*client).alterConfigs),
		fetchwire.KeyReadMirrorStates:        handle((*client).readMirrorStates),
		fetchwire.KeyWriteMirrorStates:       handle((*client).writeMirrorStates),
		fetchwire.KeyBumpLeaderEpochs:        handle((*client).bumpLeaderEpochs),
		fetchwire.KeyInitProducerId:          handle((*client).initProducerID),
		fetchwire.KeyProduce:                 {request: message[fetchwire.ProduceRequest], serve: (*client).produce},
		fetchwire.KeyFetch:                   {request: message[fetchwire.FetchRequest], serve: (*client).serveFetch},
	}
}

// apiVersions stands for the offer: answer itself answers ApiVersions, which a client may ask in any version.
func (c *client) apiVersions(*fetchwire.ApiVersionsRequest) *fetchwire.ApiVersionsResponse {
	return &fetchwire.ApiVersionsResponse{APIKeys: c.server.offered, FinalizedFeaturesEpoch: -1}
}

// messageOf is a request whose pointer is a Message.
type messageOf[T any] interface {
	*T
	fetchwire.Message
}

func message[T any, P messageOf[T]]() fetchwire.Message { return P(new(T)) }

// handle makes a handler of a function that always has an answer.
func handle[T any, P messageOf[T], R fetchwire.Response](serve func(*client, P) R) handler {
	return handler{
		request: message[T, P],
		serve: func(c *client, req fetchwire.Message) (fetchwire.Response, error) {
			return serve(c, req.(P)), nil
		},
	}
}

func (c *client) catalog() *catalog { return &c.server.catalog }

func (c *client) node() int32 { return c.server.agent.cfg.NodeID }

// metadata answers with this agent as the only broker, leader of all that is mirrored.
func (c *client) metadata(req *fetchwire.MetadataRequest) *fetchwire.MetadataResponse {
	cluster := c.server.agent.clusterID()
	resp := &fetchwire.MetadataResponse{
		Brokers:   []fetchwire.MetadataBroker{{NodeID: c.node(), Host: c.endpoint.host, Port: c.endpoint.port}},
		ClusterID: &cluster, ControllerID: c.node(), ClusterAuthorizedOps: fetchwire.NoAuthorizedOperations,
	}
	topics := c.catalog().topics()
	if req.Topics == nil {
		for i := range topics {
			resp.Topics = append(resp.Topics, c.topic(&topics[i]))
		}
		return resp
	}
	byName, byID := map[string]*servedTopic{}, map[[16]byte]*servedTopic{}
	for i := range topics {
		byName[topics[i].name] = &topics[i]
		if topics[i].id != ([16]byte{}) {
			byID[topics[i].id] = &topics[i]
		}
	}
	for _, want := range req.Topics {
		t, code := byID[want.TopicID], fetchwire.CodeUnknownTopicID
		if want.Name != nil {
			t, code = byName[*want.Name], fetchwire.CodeUnknownTopicOrPartition
		}
		if t == nil {
			resp.Topics = append(resp.Topics, fetchwire.MetadataTopic{
				ErrorCode: code, Name: want.Name, TopicID: want.TopicID, AuthorizedOps: fetchwire.NoAuthorizedOperations,
			})
			continue
		}
		resp.Topics = append(resp.Topics, c.topic(t))
	}
	return resp
}

func (c *client) topic(t *servedTopic) fetchwire.MetadataTopic {
	out := fetchwire.MetadataTopic{Name: &t.name, TopicID: t.id, AuthorizedOps: fetchwire.NoAuthorizedOperations}
	served := false
	for _, h := range t.partitions {
		node := []int32{c.node()}
		p := fetchwire.MetadataPartition{
			Index: h.tp.Partition, LeaderID: c.node(), Replicas: node, Isr: node, LeaderEpoch: -1,
		}
		log, code := c.log(t.name, h.tp.Partition)
		if log == nil {
			p.ErrorCode, p.LeaderID, p.Isr, p.OfflineReplicas = fetchwire.CodeLeaderNotAvailable, -1, nil, node
			if code == fetchwire.CodeKafkaStorageError {
				p.ErrorCode = code
			}
		} else {
			p.LeaderEpoch, served = c.catalog().leaderEpoch(log), true
		}
		out.Partitions = append(out.Partitions, p)
	}
	if c.mirrors() && !served {
		return fetchwire.MetadataTopic{
			ErrorCode: fetchwire.CodeLeaderNotAvailable, Name: &t.name, AuthorizedOps: fetchwire.NoAuthorizedOperations,
		}
	}
	return out
}

func (c *client) describeCluster(req *fetchwire.DescribeClusterRequest) *fetchwire.DescribeClusterResponse {
	resp := &fetchwire.DescribeClusterResponse{
		EndpointType: fetchwire.EndpointBrokers, ClusterID: c.server.agent.clusterID(), ControllerID: c.node(),
		ClusterAuthorizedOps: fetchwire.NoAuthorizedOperations,
	}
	if req.EndpointType != fetchwire.EndpointBrokers {
		words := fmt.Sprintf("endpoint type %d: this is a listener for brokers' clients", req.EndpointType)
		resp.ErrorCode, resp.ErrorMessage = fetchwire.CodeMismatchedEndpointType, &words
		return resp
	}
	resp.Brokers = []fetchwire.DescribeClusterBroker{
		{BrokerID: c.node(), Host: c.endpoint.host, Port: c.endpoint.port},
	}
	return resp
}

// findCoordinator answers for mirrors with this agent, and refuses groups and transactions in words.
func (c *client) findCoordinator(req *fetchwire.FindCoordinatorRequest) *fetchwire.FindCoordinatorResponse {
	one := func(key string) fetchwire.Coordinator {
		if req.CoordinatorType == fetchwire.CoordinatorMirror {
			return fetchwire.Coordinator{Key: key, NodeID: c.node(), Host: c.endpoint.host, Port: c.endpoint.port}
		}
		words := "a mirror agent has no consumer groups and no transactions: assign partitions"
		return fetchwire.Coordinator{
			Key: key, NodeID: -1, Port: -1, ErrorCode: fetchwire.CodeInvalidRequest, ErrorMessage: &words,
		}
	}
	first := one(req.CoordinatorKey)
	resp := &fetchwire.FindCoordinatorResponse{
		ErrorCode: first.ErrorCode, ErrorMessage: first.ErrorMessage, NodeID: first.NodeID, Host: first.Host,
		Port: first.Port,
	}
	for _, key := range req.CoordinatorKeys {
		resp.Coordinators = append(resp.Coordinators, one(key))
	}
	return resp
}

// leaderEpochs tells where epochs end: those of the bytes on disk, to a mirror those of the source.
func (c *client) leaderEpochs(req *fetchwire.OffsetForLeaderEpochRequest) *fetchwire.OffsetForLeaderEpochResponse {
	resp := &fetchwire.OffsetForLeaderEpochResponse{}
	for _, t := range req.Topics {
		out := fetchwire.OffsetForLeaderTopicResult{Topic: t.Topic}
		for _, p := range t.Partitions {
			result := fetchwire.OffsetForLeaderResult{Partition: p.Partition, LeaderEpoch: -1, EndOffset: -1}
			log, code := c.log(t.Topic, p.Partition)
			if log != nil && code == fetchwire.CodeNone && !c.mirrors() {
				code = c.catalog().fenced(log, p.CurrentLeaderEpoch)
			}
			if result.ErrorCode = code; code == fetchwire.CodeNone {
				result.LeaderEpoch, result.EndOffset = c.endOffset(log, p.LeaderEpoch)
			}
			out.Partitions = append(out.Partitions, result)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// endOffset tells where an epoch ends: to a mirror by the history of the source, if this is a copy.
func (c *client) endOffset(log *segment.Log, epoch int32) (int32, int64) {
	if _, copied := log.Source(); !copied || !c.mirrors() {
		return c.catalog().endOffsetFor(log, epoch)
	}
	of, end := log.SourceEndOffsetFor(epoch)
	if latest, ok := log.LatestSourceEpoch(); of < 0 && ok && epoch < c.newestEpoch(log) {
		return latest, log.LogEndOffset() // a newer one follows, without records so far
	}
	return of, end
}

// refusal is why nothing may be written here.
const refusal = "this is a read-only copy: a mirror agent serves topics while they are mirrored; write to the source"

// produce refuses records in words. Without acks a client hears nothing: its connection is closed.
func (c *client) produce(m fetchwire.Message) (fetchwire.Response, error) {
	req := m.(*fetchwire.ProduceRequest)
	if req.Acks == 0 {
		return nil, errWithoutAcks
	}
	resp := &fetchwire.ProduceResponse{}
	for _, t := range req.Topics {
		out := fetchwire.ProduceTopicResult{Topic: t.Topic, TopicID: t.TopicID}
		for _, p := range t.Partitions {
			out.Partitions = append(out.Partitions,
				fetchwire.NewProduceResult(p.Partition, fetchwire.CodePolicyViolation, refusal))
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// initProducerID answers an idempotent producer, so that its records can be refused in words, and refuses transactions.
func (c *client) initProducerID(req *fetchwire.InitProducerIdRequest) *fetchwire.InitProducerIdResponse {
	if req.TransactionalID != nil {
		return &fetchwire.InitProducerIdResponse{ErrorCode: fetchwire.CodePolicyViolation, ProducerID: -1, ProducerEpoch: -1}
	}
	return &fetchwire.InitProducerIdResponse{ProducerID: 1<<63 - 1}
}
