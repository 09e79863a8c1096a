// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// recorded executes a schedule, for its timeline.
func recorded(t *testing.T, s Scenario, encoded string) *Failure {
	t.Helper()
	p := mustPlan(t, s)
	p.refer(t) // it may fail
	decoded, _, err := inject.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	f := &Failure{schedule: decoded}
	p.record(t, f)
	return f
}

// way describes what a drawing needs of an entry.
func way(e explain.Entry) string {
	name := func(p explain.Place) string {
		return map[explain.Role]string{
			0: "nowhere", explain.OutsideRole: "outside", explain.ProcessRole: "process", explain.CacheRole: "cache ",
			explain.ServerRole: "server",
		}[p.Role] + p.Name
	}
	turn := map[explain.Turn]string{
		explain.Beginning: ", begins", explain.Ending: ", ends", explain.Dying: ", dies", explain.Starting: ", starts",
	}[e.Turn]
	news := map[explain.News]string{
		explain.Arriving: ", arrives", explain.Holding: ", held", explain.CatchingUp: ", catches up",
		explain.Repeating: ", repeats",
	}[e.News]
	failed := ""
	if e.Failed {
		failed = ", fails"
	}
	return fmt.Sprintf("%s to %s%s%s%s", name(e.From), name(e.To), turn, news, failed)
}

// TestTimeline_drawing checks what real runs record for a drawing.
func TestTimeline_drawing(t *testing.T) {
	const create = "create:ConfigMap:default/a:1"
	for _, c := range []struct {
		reason    string
		scenario  Scenario
		schedule  string
		who, what string
		want      string
	}{
		{"a step", copierScenario(false), "v1:1:", "user", "apply", "user to server"},
		{"a settling", copierScenario(false), "v1:1:", "user", "settle", "user to nowhere"},
		{"a reconcile", copierScenario(false), "v1:1:", "reconcile 1", "begins", "process to nowhere, begins"},
		{"its end", copierScenario(false), "v1:1:", "reconcile 1", "ends", "process to nowhere, ends"},
		{"a read", copierScenario(false), "v1:1:", "reconcile 1", "get Secret", "process to cache Secret"},
		{"a list", copierScenario(false), "v1:1:", "reconcile 1", "list", "process to cache ConfigMap"},
		{"a write", copierScenario(false), "v1:1:", "reconcile 1", "create", "process to server"},
		{"an event", copierScenario(false), "v1:1:", "watch", "added ConfigMap", "server to cache ConfigMap, arrives"},
		{"the garbage collector", copierScenario(false), "v1:1:", "gc", "delete", "gc to server"},
		{"a check", copierScenario(false), "v1:1:", "checks", "", "nowhere to nowhere"},
		{"a call outside", keeping(), "v1:1:", "reconcile 1", "call", "process to outside"},
		{"a violation", keeping(), "v1:1:", "check", "O5", "nowhere to nowhere"},
		{
			"an error", copierScenario(false), "v1:1:server-error@" + create, "reconcile 1", "create",
			"process to server, fails",
		},
		{
			"the end with an error", copierScenario(false), "v1:1:server-error@" + create, "reconcile 1", "ends",
			"process to nowhere, ends, fails",
		},
		{"a crash", copierScenario(false), "v1:1:crash-before@" + create, "reconcile 1", "create", "process to server, dies"},
		{
			"the next process", copierScenario(false), "v1:1:crash-before@" + create, "process", "starts",
			"process to nowhere, starts",
		},
		{
			"a late write", copierScenario(false), "v1:1:hand-over@" + create, "reconcile 1",
			"create ConfigMap default/a takes effect late",
			"process to server, fails",
		},
		{
			"another client", copierScenario(false), "v1:1:exists@" + create, phrase.AnotherClient, "create",
			phrase.AnotherClient + " to server",
		},
		{
			"a late event", copierScenario(false), "v1:1:lag-long@event+added:ConfigMap:default/a:1", "watch",
			"added ConfigMap default/a is delayed", "server to cache ConfigMap, held",
		},
		{
			"the end of that", copierScenario(false), "v1:1:lag-long@event+added:ConfigMap:default/a:1", "watch",
			"ConfigMap catches", "server to cache ConfigMap, catches up",
		},
		{
			"all events again", copierScenario(false), "v1:1:resync@event+added:ConfigMap:default/a:1", "watch", "all",
			"server to cache ConfigMap, repeats",
		},
		{
			"a restart", copierScenario(false), "v1:1:restart@quiet::/step+2:1", "process", "ends",
			"process to nowhere, dies",
		},
		{
			"a deletion", copierScenario(false), "v1:1:child-deleted@quiet:ConfigMap:default/a:1", phrase.AnotherClient,
			"delete",
			phrase.AnotherClient + " to server",
		},
		{"a late actor", copierScenario(false), "v1:1:late@collect:ConfigMap:default/a:1", "gc", "delays", "gc to nowhere"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			f := recorded(t, c.scenario, c.schedule)
			entries := slices.Clone(f.log.Entries)
			for _, a := range f.log.Arrivals {
				entries = append(entries, a.Entry)
			}
			at := slices.IndexFunc(
				entries, func(e explain.Entry) bool { return e.Who == c.who && strings.HasPrefix(e.What, c.what) },
			)
			if at < 0 {
				t.Fatalf("no such entry:\n%s", f.FullTimeline())
			}
			if got := way(entries[at]); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for i, e := range entries[:len(f.log.Entries)] {
				if i > 0 && (e.Version < entries[i-1].Version || e.Process < entries[i-1].Process) {
					t.Errorf(
						"line %d: version %d and process %d come after %d and %d", i+1, e.Version, e.Process, entries[i-1].Version,
						entries[i-1].Process,
					)
				}
			}
		})
	}
}
