// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// TestMistake checks which hint a short timeline leads to.
func TestMistake(t *testing.T) {
	const object = "ConfigMap default/a"
	act := func(who, act string, facts Facts) Entry {
		facts.Act, facts.Object = act, object
		return Entry{Who: who, Facts: facts}
	}
	begins := func(who string) Entry { return Entry{Who: who, What: "begins: default/a", Turn: Beginning} }
	ends := func(who string) Entry { return Entry{Who: who, What: "ends", Result: "ok", Turn: Ending} }
	failed := func(e Entry) Entry {
		e.Failed = true
		return e
	}
	user := func(what string) Entry { return Entry{Who: phrase.User, What: what, To: TheServer} }
	change, deletion := user("change Secret default/b"), user("delete Secret default/b")
	harm := Entry{Mark: HarmMark, At: time.Hour}
	absent := Facts{Reason: metav1.StatusReasonNotFound}
	differs := finding.Violation{
		Oracle: finding.OracleEndState, Cause: finding.CauseDifferent, About: object,
		Message: object + ": data.a is 1, want 2",
	}
	undesired := finding.Violation{Oracle: finding.OracleEndState, Cause: finding.CauseNotDesired}
	duplicate := finding.Violation{Oracle: finding.OracleDuplicates, Cause: finding.CauseCreatedAgain, About: object}
	remains := finding.Violation{Oracle: finding.OracleEndState, Cause: finding.CauseUnexpected, About: object}
	for name, c := range map[string]struct {
		violation finding.Violation
		fault     inject.Fault
		entries   []Entry
		want      string
	}{
		"a change without a reconcile": {
			undesired, "", []Entry{begins("r1"), ends("r1"), change, harm}, "no reconcile follows the last",
		},
		"a change with a reconcile": {
			undesired, "", []Entry{change, begins("r1"), act("r1", "get", Facts{}), ends("r1"), harm}, "",
		},
		"a request for another object": {
			undesired, "",
			[]Entry{change, begins("r1"), act("r1", "get", absent), ends("r1"), harm},
			"objects that do not exist",
		},
		"a deletion": {
			undesired, "", []Entry{deletion, begins("r1"), act("r1", "get", absent), ends("r1"), harm}, "",
		},
		"time passes": {
			undesired, "", []Entry{
				user("apply Secret default/b"),
				{Who: phrase.User, What: "wait 1h0m0s"},
				begins("r1"), act("r1", "get", Facts{}),
				ends("r1"), harm,
			}, "return RequeueAfter",
		},
		"an object of users is deleted": {
			undesired, "", []Entry{
				user("kubectl creates " + object), begins("r1"), act("r1", "delete", Facts{Effect: true}), ends("r1"), harm,
			}, "belongs to another client",
		},
		"created again, because the record has failed": {
			duplicate, "", []Entry{
				begins("r1"), act("r1", "create", Facts{Effect: true}), failed(ends("r1")), begins("r2"),
				act("r2", "create", Facts{Effect: true}), ends("r2"), harm,
			}, "before it had recorded that",
		},
		"created again for another reason": {
			duplicate, "", []Entry{
				begins("r1"), act("r1", "create", Facts{Effect: true}), ends("r1"), begins("r2"),
				act("r2", "create", Facts{Effect: true}), ends("r2"), harm,
			}, "",
		},
		"deleted by what a stale cache has": {
			duplicate, inject.StaleStart, []Entry{
				{Fault: inject.StaleStart, Turn: Dying}, begins("r1"), act("r1", "delete", Facts{Effect: true}), ends("r1"), harm,
			}, "a cache can be in the past",
		},
		"written after users have changed what was read": {
			differs, inject.Meanwhile, []Entry{
				begins("r1"),
				{Who: "r1", Mark: StaleMark, Facts: Facts{Act: "get"}},
				act("r1", "update", Facts{Effect: true}),
				ends("r1"), harm,
			}, "read before users changed it",
		},
		"an object remains": {remains, "", []Entry{begins("r1"), ends("r1"), harm}, "it is no longer needed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Failure{Violation: c.violation, Log: Log{Entries: c.entries}}
			if c.fault != "" {
				f.Schedule = inject.Schedule{{Fault: c.fault}}
			}
			hint, _ := f.Mistake()
			if c.want == "" && hint != "" || !strings.Contains(hint, c.want) {
				t.Errorf("got %q, want %q", hint, c.want)
			}
		})
	}
}
