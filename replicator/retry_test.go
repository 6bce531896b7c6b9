package replicator

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryConfig_BacksOffExponentiallyWithFullJitter(t *testing.T) {
	r := RetryConfig{InitialBackoff: time.Second, MaxBackoff: 5 * time.Minute, MaxAttempts: 20}
	for attempt := 1; attempt <= 30; attempt++ {
		limit := min(time.Second<<min(attempt-1, 20), 5*time.Minute)
		low, high := limit, time.Duration(0)
		for range 2000 {
			d := r.backoff(attempt)
			if d <= 0 || d > limit {
				t.Fatalf("attempt %d waits %v, outside (0, %v]", attempt, d, limit)
			}
			low, high = min(low, d), max(high, d)
		}
		if low > limit/10 || high < limit*9/10 {
			t.Errorf("attempt %d: waits from %v to %v do not cover (0, %v]", attempt, low, high, limit)
		}
	}
}

func TestRetryConfig_TriesAsOftenAsTheCauseDeserves(t *testing.T) {
	r := RetryConfig{InitialBackoff: time.Millisecond, MaxBackoff: 8 * time.Millisecond, MaxAttempts: 3}
	for cause, want := range map[Cause]int{ // tries after the first failure; -1 = without end
		CauseSourceUnreachable: -1, CauseNoLeader: -1, CauseNotAuthorized: -1, CauseDiskFull: -1, CauseIO: -1,
		CauseSourceShorter: -1,
		CauseCorruptBatch:  3, CauseOutOfOrder: 3, CauseProtocol: 3,
		CauseTopicGone: 0, CauseCreatedAgain: 0, CauseClusterChanged: 0, CauseDiverged: 0, CauseOvertaken: 0,
		CauseDirectoryLost: 0, CauseConflict: 0,
	} {
		tries := 0
		for ; tries < 1000; tries++ {
			if _, again := r.next(cause, tries+1); !again {
				break
			}
		}
		if want < 0 && tries != 1000 || want >= 0 && tries != want {
			t.Errorf("%s: %d tries, want %d", cause, tries, want)
		}
	}
	if _, again := (RetryConfig{}).next(CauseCorruptBatch, 1); again {
		t.Error("mirror.failed.retry.max.attempts=0 tries again")
	}
}

func TestRetryConfig_LooksForRoomOnADiskAtLeastEveryFiveSeconds(t *testing.T) {
	r := DefaultConfig().Retry
	for range 1000 {
		if d, _ := r.next(CauseDiskFull, 30); d > spaceBackoff {
			t.Fatalf("waits %v", d)
		}
	}
}

func TestMailbox_KeepsOrderAndWakesAWaitingReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := newMailbox[int]()
		got := make(chan []int, 1)
		go func() {
			var all []int
			for len(all) < 3 {
				<-box.ready
				all = append(all, box.take(nil)...)
			}
			got <- all
		}()
		synctest.Wait()
		for i := range 3 {
			time.Sleep(time.Second) // the bubble's clock
			box.put(i)
		}
		if all := <-got; all[0] != 0 || all[1] != 1 || all[2] != 2 {
			t.Errorf("got %v", all)
		}
	})
}
