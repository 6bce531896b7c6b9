package replicator

import (
	"log/slog"
	"path/filepath"
	"time"

	"segmirror/segment"
)

// settled is a worker's report about a partition that nothing fetches any more.
type settled struct {
	p    *partition
	held *heldLog // nil = it never had a directory
	log  *segment.Log
	err  error
}

// settle runs the action of PAUSING and of STOPPING for a partition whose fetcher has let it go.
func (m *mirror) settle(p *partition) {
	p.desk.phase = phaseSettling
	cfg := p.config.Load()
	if cfg == nil { // the source was not asked yet
		made := m.agent.states.shape(m.name, p.tp).apply(
			m.agent.cfg.Log.segmentConfig(m.board.policy, m.agent.cutDirOf(p.tp)))
		cfg = &made
	}
	held, stopping, cluster := p.feed.held, p.state() == StateStopping, m.board.clusterID
	m.toWork = append(m.toWork, func() {
		s := &settled{p: p, held: held}
		if s.held == nil {
			s.held = m.agent.logs.get(p.tp)
		}
		s.log, s.err = m.quiet(p, s.held, cfg)
		if s.err == nil && stopping {
			s.err = m.seal(p, s.log, cluster)
		}
		if s.err == nil && s.log != nil {
			s.err = s.log.Park()
		}
		m.inbox.put(event{settled: s})
	})
}

// quiet makes what a partition has durable. A partition without a directory, or whose directory is gone, has nothing:
// the log is nil then.
func (m *mirror) quiet(p *partition, held *heldLog, cfg *segment.Config) (*segment.Log, error) {
	m.agent.flusher.drop(p)
	if held == nil {
		return nil, nil
	}
	log := held.open()
	if log == nil || log.Failed() != nil || p.stats.disk.gone.Load() {
		path := filepath.Join(held.dir.dir.Path(), p.tp.String())
		if held.inode == 0 && inodeOf(path) == 0 {
			return nil, nil
		}
		if err := m.agent.logs.reopen(held, *cfg); isGone(err) {
			m.logger.Warn("the partition's directory is gone: there is nothing to make durable", topicAttr(p.tp),
				partitionAttr(p.tp), slog.Any("err", err))
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		log = held.open()
	}
	end, err := log.Flush()
	if err != nil {
		return nil, err
	}
	log.MarkFlushed(end)
	return log, nil
}

// seal runs what STOPPING does once everything is durable: it stores the last mirror epoch and the last mirrored end.
// It may run again from its start. What a partition needs before it is written to, abort markers and the producer
// reset, belongs behind the record and before STOPPED: here.
func (m *mirror) seal(p *partition, log *segment.Log, cluster string) error {
	if log == nil {
		return nil
	}
	last := LastMirrorEpoch{Topic: p.tp.Topic, Partition: p.tp.Partition, Epoch: -1, EndOffset: log.LogEndOffset()}
	source, bound := log.Source()
	if bound && source.ClusterID != cluster {
		return nil // a copy of another source, which this mirror never touched
	}
	if epoch, ok := log.LatestSourceEpoch(); ok {
		last.Epoch = epoch
	}
	err := m.agent.states.append(StateRecord{
		Type: recordLastMirrorEpochs, Mirror: m.name, Epochs: []LastMirrorEpoch{last},
	})
	if err == nil {
		m.logger.Info("last mirror epoch stored", topicAttr(p.tp), partitionAttr(p.tp),
			slog.Int("epoch", int(last.Epoch)), slog.Int64("end", last.EndOffset))
	}
	return err
}

// settled takes back a partition that is quiet.
func (m *mirror) settled(s *settled) {
	m.workers--
	p := s.p
	p.desk.phase = phaseWaiting
	p.feed.held = s.held
	p.desk.resting = true
	if s.log != nil && s.log != p.feed.log {
		p.setLog(s.held, s.log)
	}
	m.agent.working.end(p, filesParked)
	p.stats.disk.flushed.Store(p.stats.disk.appended.Load())
	switch {
	case s.err == nil:
		p.desk.settled = true
		if p.state() == StateStopping {
			m.showWhole(p)
		}
	case p.state() == StateStopping: // it stays so, with its cause
		attempts := p.stats.attempts.Add(1)
		p.move(StateStopping, failf(causeOf(s.err), "stopping: %v", s.err))
		p.desk.retry = time.Now().Add(m.agent.cfg.Retry.backoff(int(attempts)))
		m.changedState(p)
	default:
		m.fail(p, failf(causeOf(s.err), "pausing: %v", s.err))
	}
}

// showWhole lets readers see all of a log that its source tells nothing of any more: what was fetched from it, the
// source had committed.
func (m *mirror) showWhole(p *partition) {
	if log := p.feed.log; log != nil && log.Failed() == nil {
		log.UpdateHighWatermark(log.LogEndOffset())
		m.agent.served.notify()
	}
}
