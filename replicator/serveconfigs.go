package replicator

import (
	"slices"
	"strconv"
	"strings"

	"segmirror/fetchwire"
)

// mirrors reports whether the request comes from a mirror's fetcher.
func (c *client) mirrors() bool { return strings.Contains(c.id(), mirrorClientMark) }

// describeConfigs tells the configurations of mirrors, this node and mirrored topics as they are in force.
func (c *client) describeConfigs(req *fetchwire.DescribeConfigsRequest) *fetchwire.DescribeConfigsResponse {
	resp := &fetchwire.DescribeConfigsResponse{}
	for _, want := range req.Resources {
		result := fetchwire.DescribeConfigsResult{ResourceType: want.ResourceType, ResourceName: want.ResourceName}
		configs, err := c.configsOf(want.ResourceType, want.ResourceName)
		says := mirrorResult(err)
		result.ErrorCode, result.ErrorMessage = says.ErrorCode, says.ErrorMessage
		for _, config := range configs {
			if want.ConfigNames != nil && !slices.Contains(want.ConfigNames, config.Name) {
				continue
			}
			if !req.IncludeSynonyms {
				config.ConfigSynonyms = nil
			}
			if text := configTexts[config.Name]; text != "" && req.IncludeDocumentation {
				config.Documentation = &text
			}
			result.Configs = append(result.Configs, config)
		}
		resp.Resources = append(resp.Resources, result)
	}
	return resp
}

func (c *client) configsOf(kind int8, name string) ([]fetchwire.DescribedConfig, error) {
	switch a := c.server.agent; kind {
	case fetchwire.ResourceMirror:
		return a.describeMirrorConfig(name)
	case fetchwire.ResourceBroker:
		return a.describeBrokerConfig(name)
	case fetchwire.ResourceTopic:
		return a.describeTopicConfig(name)
	}
	return nil, refuse(fetchwire.CodeInvalidRequest, "resource type %d has no configuration here", kind)
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
	return describedKey(name, kind, true, configPlace{value, fetchwire.ConfigSourceTopic})
}
