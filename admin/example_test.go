package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"segmirror/admin"
	"segmirror/admin/fakeagent"
	"segmirror/fetchwire"
)

// exampleTB runs an example's agent without a test.
type exampleTB struct {
	mu      sync.Mutex
	cleanup []func()
}

func (*exampleTB) Helper()                      {}
func (*exampleTB) Fatal(args ...any)            { panic("BUG: " + fmt.Sprint(args...)) }
func (*exampleTB) Errorf(f string, args ...any) { fmt.Printf(f+"\n", args...) }
func (tb *exampleTB) Cleanup(f func()) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.cleanup = append(tb.cleanup, f)
}

func (tb *exampleTB) end() {
	for _, f := range tb.cleanup {
		f()
	}
}

// exampleAgent is an agent with the mirror dr, one partition of which lags.
func exampleAgent(tb *exampleTB) string {
	a := fakeagent.Start(tb, 1)
	fakeagent.On(a, func(req *fetchwire.StartMirrorTopicsRequest) fetchwire.Response {
		resp := &fetchwire.StartMirrorTopicsResponse{}
		resp.MirrorName = req.MirrorName
		for _, t := range req.Topics {
			r := fetchwire.MirrorTopicResult{Name: t.TopicName}
			if t.TopicName == "nowhere" {
				words := "the source has no topic nowhere"
				r.ErrorCode, r.ErrorMessage = fetchwire.CodeUnknownTopicOrPartition, &words
			}
			resp.Topics = append(resp.Topics, r)
		}
		return resp
	})
	fakeagent.On(a, func(*fetchwire.DescribeMirrorsRequest) fetchwire.Response {
		p := fetchwire.NewDescribedMirrorPartition(0, admin.StateMirroring)
		p.SourceOffset, p.DestinationOffset, p.Lag = 69, 66, 3
		return &fetchwire.DescribeMirrorsResponse{Mirrors: []fetchwire.DescribedMirror{{
			MirrorName: "dr", Topics: []fetchwire.DescribedMirrorTopic{{
				TopicName: "orders", Partitions: []fetchwire.DescribedMirrorPartition{p},
			}},
		}}}
	})
	return a.Addr()
}

// A mirror is made, topics of its source are started, and its lag is read.
func Example() {
	tb := &exampleTB{}
	defer tb.end()
	agent := exampleAgent(tb)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := admin.New(admin.Config{BootstrapServers: []string{agent}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	source := map[string]string{"bootstrap.servers": "source.example:9092"}
	if err := client.CreateMirror(ctx, "dr", source, admin.CreateMirrorOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	results, err := client.StartMirrorTopics(ctx, "dr", []string{"orders", "nowhere"}, admin.StartMirrorTopicsOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		var refusal fetchwire.KafkaError
		switch {
		case r.Err == nil:
			fmt.Println(r.Topic, "started")
		case errors.As(r.Err, &refusal):
			fmt.Println(r.Topic, "refused:", fetchwire.ErrorName(refusal.Code))
		}
	}
	described, err := client.DescribeMirrors(ctx, []string{"dr"}, admin.DescribeMirrorsOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range described.Mirrors {
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				fmt.Printf("%s %s-%d %s lag %d\n", m.Name, t.Name, p.Partition, p.State, p.Lag)
			}
		}
		fmt.Println("not ready to fail over:", strings.Join(m.Ready(), "; "))
	}
	// Output:
	// orders started
	// nowhere refused: UNKNOWN_TOPIC_OR_PARTITION
	// dr orders-0 MIRRORING lag 3
	// not ready to fail over: orders-0 lags by 3 record(s)
}

// A list as the command line takes it: names, and patterns that are matched against whole names.
func ExampleParseSelection() {
	s, err := admin.ParseSelection("payments,orders-.*")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Names, s.Patterns, s.Matches("orders-eu"), s.Matches("old-orders-eu"))
	// Output:
	// [payments] [orders-.*] true false
}
