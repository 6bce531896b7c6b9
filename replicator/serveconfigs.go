package replicator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"segmirror/fetchwire"
)

// mirrors reports whether the request comes from a mirror's fetcher.
func (c *client) mirrors() bool { return strings.Contains(c.id(), mirrorClientMark) }

// describeConfigs tells what mirrored topics are kept with.
func (c *client) describeConfigs(req *fetchwire.DescribeConfigsRequest) *fetchwire.DescribeConfigsResponse {
	resp := &fetchwire.DescribeConfigsResponse{}
	for _, want := range req.Resources {
		result := fetchwire.DescribeConfigsResult{ResourceType: want.ResourceType, ResourceName: want.ResourceName}
		configs, code, words := c.configsOf(want.ResourceType, want.ResourceName)
		if code != fetchwire.CodeNone {
			result.ErrorCode, result.ErrorMessage = code, &words
		}
		for _, config := range configs {
			if want.ConfigNames == nil || slices.Contains(want.ConfigNames, config.Name) {
				result.Configs = append(result.Configs, config)
			}
		}
		resp.Resources = append(resp.Resources, result)
	}
	return resp
}

func (c *client) configsOf(kind int8, name string) (configs []fetchwire.DescribedConfig, code int16, words string) {
	if kind != fetchwire.ResourceTopic {
		return nil, fetchwire.CodeInvalidRequest, fmt.Sprintf("resource type %d has no configuration here", kind)
	}
	for _, m := range c.server.agent.allMirrors() {
		m.board.mu.Lock()
		parts := slices.Clone(m.board.parts)
		m.board.mu.Unlock()
		for _, p := range parts {
			if p.tp.Topic != name {
				continue
			}
			if c.mirrors() && p.config.Load() == nil { // a mirror keeps what it knows rather than our guess
				return nil, fetchwire.CodeLeaderNotAvailable, "the topic's source has not told its configuration yet"
			}
			return p.describe(), fetchwire.CodeNone, ""
		}
	}
	return nil, fetchwire.CodeUnknownTopicOrPartition, "no mirrored topic of that name"
}

// describe returns the configuration of the partition's log under Kafka's names.
func (p *partition) describe() []fetchwire.DescribedConfig {
	policy := "delete"
	if p.compacted.Load() {
		policy = "compact"
	}
	out := []fetchwire.DescribedConfig{describedConfig("cleanup.policy", policy, fetchwire.ConfigTypeList)}
	cfg := p.config.Load()
	if cfg == nil { // the source was not asked yet: as it was before the restart
		m := p.mirror
		stored := m.agent.states.shape(m.name, p.tp).apply(m.agent.cfg.Log.segmentConfig(EpochPolicyDefault, ""))
		cfg = &stored
	}
	number := func(name string, n int64, kind int8) {
		out = append(out, describedConfig(name, strconv.FormatInt(n, 10), kind))
	}
	number("segment.bytes", int64(cfg.SegmentBytes), fetchwire.ConfigTypeInt)
	number("segment.ms", cfg.SegmentMs, fetchwire.ConfigTypeLong)
	number("index.interval.bytes", int64(cfg.IndexIntervalBytes), fetchwire.ConfigTypeInt)
	number("segment.index.bytes", int64(cfg.IndexMaxBytes), fetchwire.ConfigTypeInt)
	return out
}

func describedConfig(name, value string, kind int8) fetchwire.DescribedConfig {
	return fetchwire.DescribedConfig{
		Name: name, Value: &value, ReadOnly: true, Source: fetchwire.ConfigSourceTopic, ConfigType: kind,
	}
}
