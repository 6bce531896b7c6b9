package psm

// Expire removes every producer without an open transaction whose last timestamp is expirationMs or more
// below newestTimestampMs, and returns how many went.
//
// newestTimestampMs is the newest timestamp of the log (ms), never this host's clock: a clock that runs ahead
// must not thin the state that a broker will get. expirationMs is producer.id.expiration.ms. Nothing may be
// prepared. Kafka: ProducerStateManager.removeExpiredProducers, which uses its own clock.
func (m *Manager) Expire(newestTimestampMs, expirationMs int64) int {
	if len(m.journal) > 0 {
		panic("BUG: producers expired between Prepare and Commit")
	}
	removed := 0
	for id, i := range m.byID {
		e := &m.slots[i]
		if e.CurrentTxnFirstOffset < 0 && newestTimestampMs-e.TimestampMs >= expirationMs {
			delete(m.byID, id)
			m.free = append(m.free, i)
			removed++
		}
	}
	return removed
}
