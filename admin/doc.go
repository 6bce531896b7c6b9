// Package admin is the client of a mirror agent's control plane: the Admin methods of KIP-1279 for Go programs. The
// commands segmirror mirrors and segmirror configs are made of it.
//
// # What
//
// A Client reaches agents through bootstrap addresses, of which the first that answers is used, and through a list of
// agents, all of which are asked. It makes mirrors, starts, stops, pauses and resumes their topics, lists and
// describes them, alters configurations, and makes the calls agents make of each other. Topics are given by name; a
// Selection reads lists in which patterns stand among names, as the commands take them.
//
// # Several agents
//
// What is read is asked of every agent and merged: a partition is reported by who holds it. An agent that does not
// answer is named in the answer's Unreachable, and its partitions are missing there. What changes something goes to
// every agent, and to none when one of them cannot be reached. A mirror or topic that one agent knows and another does
// not is the first one's: the other's refusal is left out. With a single bootstrap address the agent that holds a
// mirror is asked for with FindCoordinator.
//
// # Errors
//
// What an agent answered is a fetchwire.KafkaError in the chain, with the agent's own words; errors.As finds it, and
// an *AgentError tells which agent it was. A stock Kafka broker is a *NotAgentError (ErrNotAgent): a call of Cluster
// Mirroring is sent only to a peer that offers it, because its number may mean something else elsewhere.
//
// # Concurrency
//
// A Client may be used by any goroutine; its calls run one after another, each asking the agents at the same time.
package admin
