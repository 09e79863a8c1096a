// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/memapi"
)

// trace is what has happened in a run: figures, the states at each Settle and, if it is to be shown, a timeline. It
// does not judge; that is what oracles do.
type trace struct {
	// The timeline is nil for most runs.
	*timeline

	// step is the index of the step of the users that is in progress.
	step int
	// changes counts the changes of the state. effects are those of the process, foreignChanges all others.
	changes, effects, foreignChanges int
	// authors are the reconciles that have made changes, in the order of the changes.
	authors []judge.Authored
	// found is what reconciles have read or deleted, while that is recorded, or nil.
	found judge.Found
	// mutations are the last writes of programs that webhooks have changed.
	mutations []judge.Mutation
	// lastEffect describes the last write of the process.
	lastEffect string
	// requests counts the requests of the process, weighted by their cost.
	requests int
	// noOps counts the writes of the process without an effect. needless are those of them that could have been avoided,
	// and lastNeedless describes the last one.
	noOps, needless int
	lastNeedless    string
	// reconciles counts the reconciles that were started, and lastResult is the last one that has ended.
	reconciles int
	lastResult *activity

	// settled are the states at each Settle, settledAt the indexes of these steps, and settledErrs the errors of the last
	// reconciles before them.
	settled     []*state.Snapshot
	settledAt   []int
	settledErrs []error
}

// settle records the state at a Settle.
func (t *trace) settle(s *state.Snapshot) {
	t.settled, t.settledAt = append(t.settled, s), append(t.settledAt, t.step)
	t.settledErrs = append(t.settledErrs, t.lastError())
}

// lastError returns the error of the last reconcile that has ended.
func (t *trace) lastError() error {
	if t.lastResult == nil {
		return nil
	}
	return t.lastResult.err
}

// changed records a watch event, written by a process or by another client.
func (t *trace) changed(e memapi.Event, byProcess bool) {
	t.changes++
	if !byProcess {
		t.foreignChanges++
		return
	}
	t.effects++
	t.lastEffect = inject.EventNames[e.Type] + " " + e.Kind.Kind + " " + phrase.Name(e.Key)
}

// authored records the reconcile that has made the changes after a version, up to another one.
func (t *trace) authored(from, to int64, by *activity) {
	if by != nil && from != to {
		t.authors = append(t.authors, judge.Authored{From: from, To: to, By: &by.author, At: time.Now()})
	}
}

// noOp records a write without an effect. Only an update or a patch is needless, because the process has what it
// changes: it can compare it first. An apply declares what should be, and a dry run asks.
func (t *trace) noOp(c *call) {
	t.noOps++
	if (c.Act == "update" || c.Act == "patch") && !c.dryRun {
		t.needless++
		t.lastNeedless = c.Act + " " + c.Kind + " " + phrase.Name(c.Key)
	}
}

// cloudChanged records a change of the external system by the process.
func (t *trace) cloudChanged(effect string) {
	t.changes++
	t.effects++
	t.lastEffect = effect
}

// mostMutations limits how many mutations are kept.
const mostMutations = 20

// mutated records that a webhook has changed a write.
func (t *trace) mutated(hook string, by judge.Writer, r memapi.AdmissionRequest, result []byte) {
	if len(t.mutations) == mostMutations {
		t.mutations = t.mutations[1:]
	}
	t.mutations = append(t.mutations, judge.Mutation{
		Hook: hook, Writer: by, Kind: r.Kind.GroupVersionKind, Key: phrase.Name(r.Key), Stored: r.OldObject, Sent: r.Object,
		Mutated: result,
	})
}

// read records what a call of a reconcile has read or deleted, while that is recorded.
func (t *trace) read(c *call, by *activity, err error) {
	switch {
	case t.found == nil || by == nil || err != nil:
	case c.into != nil, c.Act == "delete":
		writer := by.writer()
		t.found[writer] = append(t.found[writer], judge.ObjectOf{Kind: c.gvk, Key: c.Key})
	case c.out != nil:
		writer := by.writer()
		_ = meta.EachListItem(c.out, func(item runtime.Object) error {
			if obj, ok := item.(client.Object); ok {
				t.found[writer] = append(t.found[writer], judge.ObjectOf{Kind: c.gvk, Key: client.ObjectKeyFromObject(obj)})
			}
			return nil
		})
	}
}
