// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shards_test

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/sandbox"
	"trueup.dev/shards"
)

// auditPolicy logs each write of a ConfigMap or a Secret, with the object that the API server has stored. The Secrets
// of this test are not secret.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch]
  resources:
  - {group: "", resources: [configmaps, secrets]}
- level: None
`

// auditEvent is what a line of the audit log says about a write.
type auditEvent struct {
	UserAgent string `json:"userAgent"`
	Object    struct {
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Stored struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		// Data is nil if the client has asked for the metadata only.
		Data map[string]string `json:"data"`
	} `json:"responseObject"`
	Received metav1.MicroTime `json:"requestReceivedTimestamp"`
	Ended    metav1.MicroTime `json:"stageTimestamp"`
}

// seen is a write of an object by the audit log of the API server.
type seen struct {
	// version is the resource version that the API server has stored.
	version uint64
	// from is when the request arrived, and at is when it was answered.
	from, at time.Time
	secret   bool
	name     string
	labels   map[string]string
	shard    string
	hasData  bool
	n, by    string
	// author is the name of the replica that sent the request, or "" if another client did.
	author string
}

func (e *auditEvent) seen() seen {
	s := seen{
		from: e.Received.Time, at: e.Ended.Time, secret: e.Object.Resource == "secrets", name: e.Object.Name,
		labels: e.Stored.Metadata.Labels, shard: e.Stored.Metadata.Labels[shards.ShardLabel(ring)],
		hasData: e.Stored.Data != nil, n: e.Stored.Data["n"], by: e.Stored.Data["by"],
	}
	s.version, _ = strconv.ParseUint(e.Stored.Metadata.ResourceVersion, 10, 64)
	if s.name == "" { // it was created
		s.name = e.Stored.Metadata.Name
	}
	if s.secret {
		s.n, s.by = decoded(s.n), decoded(s.by)
	}
	if agent, ok := strings.CutPrefix(e.UserAgent, agentPrefix); ok {
		s.author, _, _ = strings.Cut(agent, "/")
	}
	return s
}

func decoded(data string) string {
	text, _ := base64.StdEncoding.DecodeString(data)
	return string(text)
}

// history has all writes of ConfigMaps and Secrets in the namespace of a test, from the audit log of the API server.
type history struct {
	namespace string
	log       *os.File
	// offset is how far the log was read.
	offset int64
	states []seen
	// conflicts are the writes that the API server has refused because the object had changed.
	conflicts []seen
}

// newAudited returns a namespace on a control plane of its own, and the history of its objects.
func newAudited(t *testing.T) (*apitest.Env, *history) {
	t.Helper()
	dir := t.TempDir()
	policy, path := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.jsonl")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	e := apitest.New(t, nil, sandbox.TestOptions{Options: sandbox.Options{
		AuditLog:      path,
		APIServerArgs: []string{"audit-policy-file=" + policy, "audit-log-maxsize=10000"}, // one file
	}})
	log, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("an existing cluster has no audit log that the test can read")
	}
	e.Must(err)
	e.Cleanup(func() { e.Must(log.Close()) })
	return e, &history{namespace: e.Namespace, log: log}
}

// read reads what is new in the audit log, and orders the states as the API server has stored them.
func (h *history) read(e *apitest.Env) {
	e.Helper()
	lines := bufio.NewReader(io.NewSectionReader(h.log, h.offset, math.MaxInt64-h.offset))
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break // the line is not complete yet
		}
		h.offset += int64(len(line))
		var event auditEvent
		e.Must(json.Unmarshal(line, &event))
		switch s := event.seen(); {
		case event.Object.Namespace != h.namespace:
		case event.Status.Code == http.StatusConflict:
			h.conflicts = append(h.conflicts, s)
		case event.Status.Code < http.StatusMultipleChoices:
			h.states = append(h.states, s)
		}
	}
	slices.SortStableFunc(h.states, func(a, b seen) int { return cmp.Compare(a.version, b.version) })
}

// verdict is what the history shows.
type verdict struct {
	writes, moves, children int
	// foreign are the writes of a parent or a child by a replica that did not have the parent.
	foreign []string
	// conflicts counts the writes of replicas that the API server has refused because the object had changed, and fenced
	// those among them by a replica that did not have the parent any more.
	conflicts, fenced int
	// slowest is the longest time from a change of a parent to the change of its child, and of is the parent.
	slowest time.Duration
	of      seen
	// behind are the parents whose last change has not reached the child.
	behind []string
}

// judge judges all writes until now. Moves and the slowest change are those after a time.
func (h *history) judge(e *apitest.Env, since time.Time) (v verdict) {
	e.Helper()
	h.read(e)
	parents, children, waiting := map[string]seen{}, map[string]seen{}, map[string]time.Time{}
	for _, s := range h.states {
		known := parents
		if s.secret {
			known = children
		}
		before := known[s.name]
		if s.version == before.version {
			continue // nothing was changed
		}
		if !s.hasData {
			s.n, s.by = before.n, before.by
		}
		known[s.name] = s
		owner := parents[s.name]
		if !s.secret {
			owner = before
			if before.version > 0 && before.shard != s.shard && s.shard != "" && s.at.After(since) {
				v.moves++
			}
			if _, waits := waiting[s.name]; !waits && before.n != s.n {
				waiting[s.name] = s.from
			}
		}
		if s.author != "" && s.author != owner.shard || s.secret && s.author != "" && s.by != s.author {
			v.foreign = append(v.foreign, fmt.Sprintf("%s: written by %s at version %d, assigned to %q at version %d; "+
				"its states:%s", s.name, s.author, s.version, owner.shard, owner.version, h.lastStates(s)))
		}
		if !s.secret || s.author == "" {
			continue
		}
		v.writes++
		if from, waits := waiting[s.name]; waits && s.n == owner.n {
			delete(waiting, s.name)
			if took := s.at.Sub(from); took > v.slowest && from.After(since) {
				v.slowest, v.of = took, s
			}
		}
	}
	for _, s := range h.conflicts {
		if s.author == "" {
			continue
		}
		if v.conflicts++; h.shardAt(s.name, s.from) != s.author {
			v.fenced++
		}
	}
	v.children, v.behind = len(children), slices.Sorted(maps.Keys(waiting))
	return v
}

// shardAt returns the shard that had a parent at a time.
func (h *history) shardAt(name string, at time.Time) (shard string) {
	for _, s := range h.states {
		if !s.secret && s.name == name && s.at.Before(at) {
			shard = s.shard
		}
	}
	return shard
}

// lastStates returns the states of a parent and its child until one of them.
func (h *history) lastStates(until seen) (text string) {
	same := slices.DeleteFunc(slices.Clone(h.states), func(s seen) bool {
		return s.name != until.name || s.version > until.version
	})
	for _, s := range same[max(0, len(same)-12):] {
		kind := "ConfigMap"
		if s.secret {
			kind = "Secret"
		}
		text += fmt.Sprintf("\n\t%s %d %s %s of %q: n=%s by=%s labels=%v",
			s.at.Format("05.000"), s.version, kind, s.name, s.author, s.n, s.by, s.labels)
	}
	return text
}
