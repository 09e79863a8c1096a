// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/readiness"
)

// stepRun is one run of a step of [Steps]. It collects the children that are waited for. Methods do nothing on a nil
// receiver. It is safe for concurrent use.
type stepRun struct {
	// outside is the run of the step that contains these Steps, or nil.
	outside *stepRun
	rule    readiness.Rule
	// removes reports whether the step is removed. live reports whether an empty list of children must be confirmed by the
	// API server.
	removes, live bool
	// hasCondition reports whether the condition of these Steps says what the step waits for.
	hasCondition bool

	mu      sync.Mutex
	waiting []string
	// noted counts the calls of wait.
	noted  int
	failed bool
	// watches reports whether an event of a child, or the retry of a reflected error, makes the step run again.
	watches bool
	// unseen reports whether the caches lack a child. It may be deleted before they contain it, and then no event
	// announces that it is gone.
	unseen bool
}

// announces reports whether Steps record an event if the step waits for a long time.
func (r *stepRun) announces() bool { return r != nil && (r.hasCondition || r.outside.announces()) }

func stepRunFrom(ctx context.Context) *stepRun {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		return s.stepRun
	}
	return nil
}

// onto returns the context in which the sub reconciler of the step runs.
func (r *stepRun) onto(ctx context.Context) context.Context {
	s := scopeFrom(ctx)
	s.stepRun = r
	return s.onto(ctx)
}

// MustRemove reports whether a sub reconciler must remove what it manages: the resource is being deleted, or the
// sub reconciler is part of a step of [Steps] that is not wanted. Built-in reconcilers and the Finalize functions of a
// [SyncReconciler] consider this.
func MustRemove(ctx context.Context, resource client.Object) bool {
	if resource.GetDeletionTimestamp() != nil {
		return true
	}
	run := stepRunFrom(ctx)
	return run != nil && run.removes
}

// confirms reports whether an empty list of children must be confirmed by the API server.
func (r *stepRun) confirms() bool { return r != nil && r.removes && r.live }

// waitForChild records that a child is waited for.
func (r *stepRun) waitForChild(text string, failed bool) {
	r.wait(text, failed)
	for ; r != nil; r = r.outside {
		r.mu.Lock()
		r.watches = true
		r.mu.Unlock()
	}
}

// wait records what is waited for.
func (r *stepRun) wait(text string, failed bool) {
	for ; r != nil; r = r.outside {
		r.mu.Lock()
		r.noted++
		if !slices.Contains(r.waiting, text) {
			r.waiting = append(r.waiting, text)
		}
		r.failed = r.failed || failed
		r.mu.Unlock()
	}
}

// notes returns how often something was noted that the step waits for.
func (r *stepRun) notes() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.noted
}

// noteUnseen records that the caches lack a child.
func (r *stepRun) noteUnseen() {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unseen = true
	}
}

// noteReadiness records a child that is not ready.
func (r *stepRun) noteReadiness(child client.Object) {
	if r == nil || r.removes {
		return
	}
	if child.GetName() == "" {
		r.waitForChild(typeName(child)+" does not exist", false)
		return
	}
	if ready := r.rule.Of(child); !ready.IsReady() {
		text := identify(child) + ": " + ready.Message
		if ready.Message == "" {
			text = identify(child) + ": " + ready.Reason
		}
		r.waitForChild(text, ready.State == readiness.Failed)
	}
}

// noteRemaining records a child that is removed and still exists. It was deleted in this request, or earlier.
func (r *stepRun) noteRemaining(child client.Object) {
	text := "is being deleted"
	if ready := readiness.Exists.Of(child); !ready.IsReady() {
		text = ready.Message
	}
	r.waitForChild(identify(child)+": "+text, false)
}

// noteError records a reflected error of a child.
func (r *stepRun) noteError(child client.Object, err error) {
	reason := string(apierrs.ReasonForError(err))
	r.waitForChild(identify(child)+": "+reason, true)
}

// maxWaiting limits the objects in a text.
const maxWaiting = 3

// text says what is waited for, or returns "".
func (r *stepRun) text() (text string, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.waiting
	if more := len(waiting) - maxWaiting; more > 0 {
		waiting = append(slices.Clone(waiting[:maxWaiting]), strconv.Itoa(more)+" more")
	}
	return truncate(strings.Join(waiting, ", ")), r.failed
}

// manage is manageChild, and records what the step of [Steps] waits for, and whether enclosing finalizers must be kept.
func (c *children[T, CT]) manage(
	ctx context.Context, parent T, candidates found[CT], desiredChild func() (CT, error),
) (outcome[CT], error) {
	defer c.keepFinalizers(ctx, parent)
	run := stepRunFrom(ctx)
	if run == nil {
		return c.manageChild(ctx, parent, candidates, desiredChild)
	}
	var desired CT
	managed, err := c.manageChild(ctx, parent, candidates, func() (child CT, err error) {
		desired, err = desiredChild()
		return desired, err
	})
	switch {
	case run.removes:
		for _, child := range candidates.known {
			run.noteRemaining(child)
		}
	case err != nil && nilcheck.IsNilPointer(desired):
		run.wait(typeName(c.childType)+" was not reconciled", false)
	case err != nil: // another reconciler may handle the error
		run.wait(identify(desired)+" was not reconciled", false)
	case managed.skip:
	case managed.err != nil && !nilcheck.IsNilPointer(desired):
		run.noteError(desired, managed.err)
	case !nilcheck.IsNilPointer(managed.child):
		run.noteReadiness(managed.child)
	}
	return managed, err
}

// keepFinalizers makes enclosing reconcilers keep their finalizers while the finalizer of the children is held.
func (c *children[T, CT]) keepFinalizers(ctx context.Context, parent T) {
	held := c.heldFinalizer()
	if held != "" && MustRemove(ctx, parent) && controllerutil.ContainsFinalizer(parent, held) {
		unfinished(ctx, "")
	}
}
