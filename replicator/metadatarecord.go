package replicator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The records of `__cluster_metadata` that an agent keeps. A record has no key; its value is the frame's version, the
// record's type and the record's version, each an unsigned varint, and then the fields in Kafka's flexible encoding.
//
//	type  versions  record
//	   4  0         ResourceType int8, ResourceName string, Name string, Value nullable string
//	   5  0-3       PartitionId int32, TopicId uuid, MinLeaderEpoch int32 (3+), tags
//	  18  0         Id uuid, ResourceType int8, ResourceName string, PatternType int8, Principal string, Host string,
//	                Operation int8, PermissionType int8
//	  19  0         Id uuid
//
// Kafka: MetadataRecordSerde, ConfigRecord, PartitionChangeRecord, AccessControlEntryRecord,
// RemoveAccessControlEntryRecord. Version 3 of a partition change is KIP-1279's.
const (
	metadataFrameVersion = 1

	recordConfig          = 4
	recordPartitionChange = 5
	recordACL             = 18
	recordACLRemoved      = 19

	partitionChangeVersion = 3
)

// ErrMetadataRecord marks a record of the metadata log that cannot be read.
var ErrMetadataRecord = errors.New("unreadable cluster metadata record")

// MetadataRecord is one record of `__cluster_metadata`, decoded: exactly one field is set.
type MetadataRecord struct {
	Config          *ConfigRecord
	PartitionChange *PartitionChangeRecord
	ACL             *ACLRecord
	ACLRemoved      *[16]byte // the id of an ACLRecord
}

// ConfigRecord sets or deletes one key of a resource's configuration.
type ConfigRecord struct {
	ResourceType int8 // topic 2, broker 4, mirror 64
	ResourceName string
	Name         string
	Value        *string // nil deletes the key
}

// PartitionChangeRecord raises the local leader epoch of a partition. Kafka's other changes, all tagged, have no
// meaning here and are skipped.
type PartitionChangeRecord struct {
	PartitionID    int32
	TopicID        [16]byte
	MinLeaderEpoch int32 // -1 = no change
}

// ACLRecord allows or denies an operation. The numbers are those of Kafka's AclOperation, AclPermissionType,
// PatternType and ResourceType.
type ACLRecord struct {
	ID             [16]byte
	ResourceType   int8 // cluster mirror 8
	ResourceName   string
	PatternType    int8
	Principal      string
	Host           string
	Operation      int8
	PermissionType int8
}

// AppendTo appends the record's value.
func (r *MetadataRecord) AppendTo(dst []byte) []byte {
	switch {
	case r.Config != nil:
		c := r.Config
		dst = append(dst, metadataFrameVersion, recordConfig, 0, byte(c.ResourceType))
		dst = appendCompact(appendCompact(dst, c.ResourceName), c.Name)
		if c.Value == nil {
			return append(dst, 0, 0)
		}
		return append(appendCompact(dst, *c.Value), 0)
	case r.PartitionChange != nil:
		c := r.PartitionChange
		dst = append(dst, metadataFrameVersion, recordPartitionChange, partitionChangeVersion)
		dst = binary.BigEndian.AppendUint32(dst, uint32(c.PartitionID))
		dst = append(dst, c.TopicID[:]...)
		dst = binary.BigEndian.AppendUint32(dst, uint32(c.MinLeaderEpoch))
		return append(dst, 0)
	case r.ACL != nil:
		a := r.ACL
		dst = append(dst, metadataFrameVersion, recordACL, 0)
		dst = append(append(dst, a.ID[:]...), byte(a.ResourceType))
		dst = append(appendCompact(dst, a.ResourceName), byte(a.PatternType))
		dst = appendCompact(appendCompact(dst, a.Principal), a.Host)
		return append(dst, byte(a.Operation), byte(a.PermissionType), 0)
	case r.ACLRemoved != nil:
		dst = append(dst, metadataFrameVersion, recordACLRemoved, 0)
		return append(append(dst, r.ACLRemoved[:]...), 0)
	default:
		panic("BUG: empty metadata record")
	}
}

// DecodeMetadataRecord decodes the value of a record of `__cluster_metadata` and keeps no part of it. Errors wrap
// ErrMetadataRecord: a frame, type or version this program does not know, lengths that do not fit, bytes left over.
func DecodeMetadataRecord(value []byte) (MetadataRecord, error) {
	v := stateReader{b: value}
	frame, kind, version := v.uvarint(), v.uvarint(), v.uvarint()
	if !v.bad && frame != metadataFrameVersion {
		return MetadataRecord{}, fmt.Errorf("%w: frame version %d", ErrMetadataRecord, frame)
	}
	newest := uint32(0)
	var r MetadataRecord
	switch kind {
	case recordConfig:
		r.Config = v.config()
	case recordPartitionChange:
		newest = partitionChangeVersion
		r.PartitionChange = v.partitionChange(version)
	case recordACL:
		r.ACL = v.acl()
	case recordACLRemoved:
		id := v.uuid()
		r.ACLRemoved = &id
		v.tags()
	default:
		if !v.bad {
			return MetadataRecord{}, fmt.Errorf("%w: type %d", ErrMetadataRecord, kind)
		}
	}
	if !v.bad && version > newest {
		return MetadataRecord{}, fmt.Errorf("%w: type %d has version %d", ErrMetadataRecord, kind, version)
	}
	if err := v.end("value"); err != nil {
		return MetadataRecord{}, fmt.Errorf("%w: %w", ErrMetadataRecord, err)
	}
	return r, nil
}

func (s *stateReader) config() *ConfigRecord {
	c := &ConfigRecord{ResourceType: s.int8(), ResourceName: s.compact(), Name: s.compact()}
	if n := s.length(); n > 0 {
		value := string(s.take(n - 1))
		c.Value = &value
	}
	s.tags()
	return c
}

func (s *stateReader) partitionChange(version uint32) *PartitionChangeRecord {
	c := &PartitionChangeRecord{PartitionID: s.int32(), TopicID: s.uuid(), MinLeaderEpoch: -1}
	if version >= 3 {
		c.MinLeaderEpoch = s.int32()
	}
	s.tags()
	return c
}

func (s *stateReader) acl() *ACLRecord {
	a := &ACLRecord{
		ID: s.uuid(), ResourceType: s.int8(), ResourceName: s.compact(), PatternType: s.int8(), Principal: s.compact(),
		Host: s.compact(), Operation: s.int8(), PermissionType: s.int8(),
	}
	s.tags()
	return a
}

func (s *stateReader) uuid() (id [16]byte) {
	copy(id[:], s.take(16))
	return id
}

// uvarint reads an unsigned varint of at most 32 bits.
func (s *stateReader) uvarint() uint32 {
	n, size := binary.Uvarint(s.b)
	if s.bad || size <= 0 || n > math.MaxUint32 {
		s.bad = true
		return 0
	}
	s.b = s.b[size:]
	return uint32(n)
}
