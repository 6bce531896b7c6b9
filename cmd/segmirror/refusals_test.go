package main

import (
	"path/filepath"
	"strings"
	"testing"

	"segmirror/admin"
)

// What an agent refuses, in the order in which the states come about: each step is a command, what it prints, and what
// stderr says of a refusal (exit 1) or "" for exit 0. The mirrors m and n have the same source.
func TestMirrors_AnAgentsRefusalsReachTheTerminal(t *testing.T) {
	source, agent, dir := sessionSource(t), freeAddr(t), t.TempDir()
	startSessionAgent(t, filepath.Join(dir, "data"), agent)
	client, err := admin.New(admin.Config{BootstrapServers: []string{agent}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	good := mirrorFile(t, "bootstrap.servers="+source+"\n")
	wait := &session{t: t, client: client}
	steps := []struct {
		command, prints, says string
		await                 []string // mirror, topic, state: before the command
	}{
		{command: "--create --mirror a/b --mirror-config " + good, says: "INVALID_MIRROR_NAME (1135)"},
		{command: "--create --mirror m.stopped --mirror-config " + good, says: "INVALID_MIRROR_NAME (1135)"},
		{command: "--create --mirror .. --mirror-config " + good, says: "INVALID_MIRROR_NAME (1135)"},
		{command: "--create --mirror " + strings.Repeat("x", 250) + " --mirror-config " + good, says: "INVALID_MIRROR_NAME (1135)"},
		{command: "--create --mirror m --mirror-config " + mirrorFile(t, "mirror.topics.include=a\n"), says: "bootstrap.servers is required"},
		{
			command: "--create --mirror m --mirror-config " + mirrorFile(t, "bootstrap.servers="+source+"\nmirror.topic.include=a\n"),
			says:    "mirror.topic.include",
		},
		{
			command: "--create --mirror m --mirror-config " + mirrorFile(t, "bootstrap.servers="+freeAddr(t)+"\n"),
			says:    "BROKER_NOT_AVAILABLE (8)",
		},
		{command: "--list", prints: "No mirrors found\n"},
		{command: "--create --mirror m --mirror-config " + good, prints: "Created mirror m\n"},
		{command: "--create --mirror m --mirror-config " + good, says: "mirror m exists"},
		{command: "--create --mirror n --mirror-config " + good, prints: "Created mirror n\n"},

		{command: "--start --mirror gone --topics foo", says: "Mirror 'gone' not found or has no configuration"},
		{
			command: "--start --mirror m --topics nowhere,bar", prints: "Started 1 mirror topic(s) in mirror m: [bar]\n",
			says: "topic nowhere of mirror m: UNKNOWN_TOPIC_OR_PARTITION (3): the source ",
		},
		{command: "--start --mirror n --topics bar", says: "TOPIC_ALREADY_IN_MIRROR (1137): mirror m holds topic bar"},
		{
			command: "--start --mirror n --topics later-.*",
			prints:  "No matching topics found yet. Patterns saved to mirror n for auto-discovery.\n",
		},

		{command: "--stop --mirror m --topics nowhere", says: "topic nowhere of mirror m: "},
		{command: "--stop --mirror n --topics bar", says: "topic bar of mirror n: TOPIC_NOT_IN_MIRROR (1138): mirror m holds topic bar"},
		{command: "--resume --mirror m --topics bar", says: "MIRROR_TOPIC_NOT_PAUSED (1140)", await: []string{"m", "bar", "MIRRORING"}},
		{command: "--pause --mirror m --topics bar", prints: "Paused mirroring for 1 topic(s) in mirror m: [bar]\n"},
		{
			command: "--pause --mirror m --topics bar", prints: "Paused mirroring for 1 topic(s) in mirror m: [bar]\n",
			await: []string{"m", "bar", "PAUSED"},
		},
		{command: "--start --mirror m --topics bar", says: "topic bar is paused: resume it"},
		{command: "--describe --check --mirror m", says: "bar-0 is PAUSED: how far the source is ahead is not known; resume it"},
		{command: "--delete --mirror m", says: "MIRROR_NOT_EMPTY (1142)"},
		{command: "--stop --mirror m --topics .*", prints: "Stopped mirroring for 1 topic(s) in mirror m: [bar]\n"},
		{
			command: "--stop --mirror m --topics bar", says: "TOPIC_NOT_IN_MIRROR (1138): topic bar is stopped already",
			await: []string{"m", "bar", "STOPPED"},
		},
		{command: "--pause --mirror m --topics bar", says: "MIRROR_TOPIC_BEING_STOPPED (1141)"},
		{command: "--resume --mirror m --topics bar", says: "MIRROR_TOPIC_NOT_PAUSED (1140)"},
		{command: "--describe --check --mirror m", prints: "Mirror m is ready to fail over\n"},
		{command: "--describe --mirror m,gone", says: "Mirror 'gone' not found or has no configuration"},

		{command: "--delete --mirror gone", says: "Mirror 'gone' not found or has no configuration"},
		{command: "--delete --mirror m", prints: "Deleted mirror m\n"},
		{command: "--delete --mirror n", prints: "Deleted mirror n\n"},
		{command: "--list", prints: "No mirrors found\n"},
	}
	for _, step := range steps {
		if step.await != nil {
			wait.await(step.await[0], step.await[1], step.await[2])
		}
		args := append([]string{"mirrors", "--bootstrap-server", agent}, strings.Fields(step.command)...)
		code, stdout, stderr := runCommand(t.Context(), args...)
		wantCode, lines := exitDone, 0
		if step.says != "" {
			wantCode, lines = exitFinding, 1
		}
		if code != wantCode || stdout != step.prints || !strings.Contains(stderr, step.says) || strings.Count(stderr, "\n") != lines {
			t.Errorf("%s: exit %d, prints %q and %q; want %d, %q and %q", step.command, code, stdout, stderr, wantCode,
				step.prints, step.says)
		}
	}
}
