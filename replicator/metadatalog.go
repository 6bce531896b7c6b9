package replicator

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// The kinds of resources whose configuration the metadata log holds. Kafka: ConfigResource.Type; 64 is KIP-1279's.
const (
	resourceTopic  = fetchwire.ResourceTopic
	resourceBroker = fetchwire.ResourceBroker
	resourceMirror = fetchwire.ResourceMirror
)

// resource names what a configuration belongs to.
type resource struct {
	kind int8
	name string
}

// leaderKey names a partition by its topic's id.
type leaderKey struct {
	topic     segment.TopicID
	partition int32
}

// metadataImage is what the metadata log says.
type metadataImage struct {
	configs map[resource]map[string]string
	epochs  map[leaderKey]int32 // least leader epochs
	acls    map[[16]byte]ACLRecord
}

var metadataTopicPartition = segment.TopicPartition{Topic: metadataTopic}

// metadataLog is `__cluster_metadata-0`: the configuration of mirrors, brokers and topics, and least leader epochs, as
// requests changed them. It can hold credentials, so its directory and files are closed to others.
type metadataLog struct {
	*recordLog[MetadataRecord, *metadataImage]

	// guarded by watching
	watching sync.Mutex
	watchers []func(resource)
}

func metadataLogKind() recordKind[MetadataRecord, *metadataImage] {
	config := recordLogConfig()
	config.Private = true
	return recordKind[MetadataRecord, *metadataImage]{
		name:         "metadata log",
		tp:           metadataTopicPartition,
		id:           segment.TopicID{15: 1}, // Kafka: Uuid.METADATA_TOPIC_ID
		whole:        true,
		config:       config,
		rewriteBytes: recordLogRewriteBytes,

		empty: func() *metadataImage {
			return &metadataImage{
				configs: map[resource]map[string]string{}, epochs: map[leaderKey]int32{}, acls: map[[16]byte]ACLRecord{},
			}
		},
		decode: func(_, value []byte) (MetadataRecord, error) { return DecodeMetadataRecord(value) },
		encode: func(r *MetadataRecord) (key, value []byte) { return nil, r.AppendTo([]byte{}) },
		apply:  applyMetadata,
		all:    metadataRecords,
	}
}

// openMetadataLog opens and replays the metadata log of dir and starts its writer; close stops it.
func openMetadataLog(dir *segment.LogDir, logger *slog.Logger) (*metadataLog, error) {
	log, err := openRecordLog(metadataLogKind(), dir, logger)
	if err != nil {
		return nil, err
	}
	return &metadataLog{recordLog: log}, nil
}

// append makes records durable, all of them or none, and tells the watchers of each resource that changed. At most
// 1000 records. Any goroutine.
func (l *metadataLog) append(records ...MetadataRecord) error {
	if err := l.recordLog.append(records...); err != nil {
		return err
	}
	l.watching.Lock()
	watchers := slices.Clone(l.watchers)
	l.watching.Unlock()
	told := map[resource]bool{}
	for i := range records {
		c := records[i].Config
		if c == nil || told[resource{c.ResourceType, c.ResourceName}] {
			continue
		}
		told[resource{c.ResourceType, c.ResourceName}] = true
		for _, watch := range watchers {
			watch(resource{c.ResourceType, c.ResourceName})
		}
	}
	return nil
}

// onChange has watch called after each change of a configuration, by the goroutine that appended it, no lock held.
func (l *metadataLog) onChange(watch func(resource)) {
	l.watching.Lock()
	defer l.watching.Unlock()
	l.watchers = append(l.watchers, watch)
}

// config returns a copy of a resource's configuration, empty if it has none. Any goroutine.
func (l *metadataLog) config(r resource) map[string]string {
	out := map[string]string{}
	l.view(func(image *metadataImage) { maps.Copy(out, image.configs[r]) })
	return out
}

// value returns one key of a resource's configuration. Any goroutine.
func (l *metadataLog) value(r resource, key string) (value string, ok bool) {
	l.view(func(image *metadataImage) { value, ok = image.configs[r][key] })
	return value, ok
}

// names returns the resources of a kind that have any configuration, in order. Any goroutine.
func (l *metadataLog) names(kind int8) []string {
	var out []string
	l.view(func(image *metadataImage) {
		for r := range image.configs {
			if r.kind == kind {
				out = append(out, r.name)
			}
		}
	})
	slices.Sort(out)
	return out
}

// minLeaderEpoch returns the least leader epoch of a partition, -1 for none. Any goroutine.
func (l *metadataLog) minLeaderEpoch(topic segment.TopicID, partition int32) int32 {
	epoch := int32(-1)
	l.view(func(image *metadataImage) {
		if stored, ok := image.epochs[leaderKey{topic, partition}]; ok {
			epoch = stored
		}
	})
	return epoch
}

// applyMetadata merges one record into image. A later record wins, a leader epoch never falls.
func applyMetadata(image *metadataImage, r *MetadataRecord) {
	switch {
	case r.Config != nil:
		c := r.Config
		key := resource{c.ResourceType, c.ResourceName}
		config := image.configs[key]
		switch {
		case c.Value != nil && config == nil:
			image.configs[key] = map[string]string{c.Name: *c.Value}
		case c.Value != nil:
			config[c.Name] = *c.Value
		default:
			delete(config, c.Name)
			if len(config) == 0 {
				delete(image.configs, key)
			}
		}
	case r.PartitionChange != nil:
		p := r.PartitionChange
		key := leaderKey{p.TopicID, p.PartitionID}
		if stored, ok := image.epochs[key]; p.MinLeaderEpoch >= 0 && (!ok || p.MinLeaderEpoch > stored) {
			image.epochs[key] = p.MinLeaderEpoch
		}
	case r.ACL != nil:
		image.acls[r.ACL.ID] = *r.ACL
	case r.ACLRemoved != nil:
		delete(image.acls, *r.ACLRemoved)
	}
}

// metadataRecords returns the records that say everything in image, in a fixed order.
func metadataRecords(image *metadataImage) []MetadataRecord {
	var out []MetadataRecord
	for _, r := range slices.SortedFunc(maps.Keys(image.configs), func(a, b resource) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	}) {
		config := image.configs[r]
		for _, name := range slices.Sorted(maps.Keys(config)) {
			value := config[name]
			out = append(out, MetadataRecord{Config: &ConfigRecord{
				ResourceType: r.kind, ResourceName: r.name, Name: name, Value: &value,
			}})
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(image.epochs), func(a, b leaderKey) int {
		return cmp.Or(slices.Compare(a.topic[:], b.topic[:]), cmp.Compare(a.partition, b.partition))
	}) {
		out = append(out, MetadataRecord{PartitionChange: &PartitionChangeRecord{
			PartitionID: key.partition, TopicID: key.topic, MinLeaderEpoch: image.epochs[key],
		}})
	}
	for _, id := range slices.SortedFunc(maps.Keys(image.acls), func(a, b [16]byte) int {
		return slices.Compare(a[:], b[:])
	}) {
		acl := image.acls[id]
		out = append(out, MetadataRecord{ACL: &acl})
	}
	return out
}
