// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/apis"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/readiness"
	"trueup.dev/stash"
)

// Parts of the text of a step that waits, for example "step db: Deployment default/db: 1 of 3 replicas are available,
// since 2026-11-24T04:30:00Z, longer than 10m0s". The cause follows, so that the time does not depend on it: "step dns:
// has not finished, since 2026-11-24T04:30:00Z: the provider does not answer".
const (
	sinceText  = ", since "
	longerText = ", longer than "
)

func stepText(name, waits string) string { return "step " + name + ": " + waits }

// sinceIn returns since when a text is in the message of a condition, whether its deadline was exceeded, and the cause.
// The message is the only memory of the time, so it survives a restart.
func sinceIn(message, text string) (since time.Time, exceeded bool, cause string, ok bool) {
	prefix := text + sinceText
	at := strings.Index(message, prefix)
	if at < 0 || at > 0 && !strings.HasSuffix(message[:at], "; ") {
		return time.Time{}, false, "", false
	}
	rest := message[at+len(prefix):]
	stamp := rest[:min(len(rest), len("2006-01-02T15:04:05Z"))]
	since, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return time.Time{}, false, "", false
	}
	rest, _, _ = strings.Cut(rest[len(stamp):], "; step ")
	_, cause, _ = strings.Cut(rest, ": ")
	return since, strings.HasPrefix(rest, longerText), cause, true
}

// sameCause reports whether two causes differ at most in what changes with each attempt, such as the id of a request, a
// port or a time. The status is not written for such a difference: the write would trigger the next attempt.
func sameCause(a, b string) bool {
	mask := func(text string) string {
		return tokens.ReplaceAllStringFunc(text, func(token string) string {
			if strings.ContainsAny(token, "0123456789") {
				return "#"
			}
			return token
		})
	}
	return mask(a) == mask(b)
}

var tokens = regexp.MustCompile(`[0-9A-Za-z-]{5,}`)

// setConditions sets the conditions to the state of the steps, and announces deadlines that were exceeded.
func (r *stepsRequest[T]) setConditions(ctx context.Context) {
	if r.removesAll && stepRunFrom(ctx) != nil {
		return // the step that contains these Steps sets its conditions
	}
	before := r.conditionMessage(ctx)
	texts, condition := []string{}, metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonStepsReady}
	for i, s := range r.Steps.Steps {
		state := &r.states[i]
		if state.waits == "" {
			continue
		}
		text := stepText(s.Name, state.waits)
		known, cause := false, ""
		if state.since, state.exceededBefore, cause, known = sinceIn(before, text); !known {
			state.since = r.now.UTC().Truncate(time.Second)
		}
		if sameCause(cause, state.cause) {
			state.cause = cause
		}
		text += sinceText + state.since.Format(time.RFC3339)
		if limit, reason := r.deadline(ctx, i); limit > 0 && !r.now.Before(state.since.Add(limit)) {
			state.exceeded, state.stuck = true, reason == ReasonRemovalStuck
			text += longerText + limit.String()
			r.announce(ctx, *state, reason, withCause(text, state.cause))
		}
		texts = append(texts, withCause(text, state.cause))
		condition = worse(condition, conditionOfStep(*state))
	}
	if r.removesAll && len(texts) == 0 {
		condition.Status, condition.Reason = metav1.ConditionUnknown, ReasonRemovingStep
		texts = []string{"all steps are removed"}
	}
	condition.Message = strings.Join(texts, "; ")
	r.setCondition(ctx, r.Condition, condition)
	for i, s := range r.Steps.Steps {
		own := conditionOfStep(r.states[i])
		own.Message = withCause(r.states[i].waits, r.states[i].cause)
		if other := r.states[i].waitsFor; other != "" {
			own.Message = "waits for step " + other
		}
		r.setCondition(ctx, s.Condition, own)
	}
	if r.removesAll && r.Condition != "" {
		scopeFrom(ctx).stored.evenIfDeleting()
	}
}

func withCause(text, cause string) string {
	if cause == "" {
		return text
	}
	return text + ": " + cause
}

// conditionOfStep returns the status and the reason of the condition of a step.
func conditionOfStep(state stepState) metav1.Condition {
	c := metav1.Condition{Status: metav1.ConditionUnknown, Reason: ReasonWaitingForStep}
	switch {
	case state.done && state.removes:
		c.Status, c.Reason = metav1.ConditionTrue, ReasonStepUnwanted
	case state.done:
		c.Status, c.Reason = metav1.ConditionTrue, ReasonStepsReady
	case state.exceeded && !state.stuck:
		c.Status, c.Reason = metav1.ConditionFalse, ReasonStepDeadlineExceeded
	case state.failed:
		c.Status, c.Reason = metav1.ConditionFalse, ReasonStepFailed
	case state.removes:
		c.Reason = ReasonRemovingStep
	}
	return c
}

// worse returns the condition with the worse status, or the first.
func worse(a, b metav1.Condition) metav1.Condition {
	rank := map[metav1.ConditionStatus]int{metav1.ConditionFalse: 2, metav1.ConditionUnknown: 1}
	if rank[b.Status] > rank[a.Status] {
		return b
	}
	return a
}

// announce records an event about a deadline, once, when the status that says so is stored.
func (r *stepsRequest[T]) announce(ctx context.Context, state stepState, reason, text string) {
	config, err := RetrieveConfig(ctx)
	if state.exceededBefore || err != nil {
		return
	}
	resource := r.resource
	whenStored(ctx, func() {
		config.recorder().Eventf(resource, corev1.EventTypeWarning, reason, "%s", truncate(text))
	})
}

// conditionMessage returns the message of the condition of all steps.
func (r *stepsRequest[T]) conditionMessage(ctx context.Context) string {
	var found *metav1.Condition
	switch {
	case r.Condition == "":
	case r.Conditions != nil:
		found = r.Conditions(ctx, r.resource).GetCondition(r.Condition)
	default:
		found = conditionOf(r.status.of(r.resource).conditionsOf(r.resource), r.Condition)
	}
	if found == nil {
		return ""
	}
	return found.Message
}

func (r *stepsRequest[T]) setCondition(ctx context.Context, conditionType string, c metav1.Condition) {
	switch {
	case conditionType == "":
	case r.Conditions == nil:
		c.Type, c.LastTransitionTime = conditionType, metav1.NewTime(r.now).Rfc3339Copy()
		r.status.of(r.resource).changeConditions(r.resource, func(conditions *[]metav1.Condition) {
			meta.SetStatusCondition(conditions, c)
		})
	case c.Status == metav1.ConditionTrue:
		r.Conditions(ctx, r.resource).MarkTrue(conditionType, c.Reason, "%s", c.Message)
	case c.Status == metav1.ConditionFalse:
		r.Conditions(ctx, r.resource).MarkFalse(conditionType, c.Reason, "%s", c.Message)
	default:
		r.Conditions(ctx, r.resource).MarkUnknown(conditionType, c.Reason, "%s", c.Message)
	}
}

// statusTypes holds a statusType for each Go type of resources. The zero value is ready to use. It is safe for
// concurrent use.
type statusTypes struct{ types sync.Map }

func (s *statusTypes) of(resource client.Object) *statusType {
	t := reflect.TypeOf(resource)
	if known, ok := s.types.Load(t); ok {
		return known.(*statusType)
	}
	known, _ := s.types.LoadOrStore(t, newStatusType(resource))
	return known.(*statusType)
}

// hasConditions reports whether the status has a field Conditions.
func (s *statusTypes) hasConditions(resource client.Object) bool {
	return !nilcheck.IsNilPointer(resource) && s.of(resource).HasConditions()
}

// derivedCondition returns the condition of a status that is derived from others, as InitializeConditions shows, and
// those others. It returns "" if the status has none.
func (s *statusType) derivedCondition(ctx context.Context, blank client.Object) (happy string, dependents []string) {
	blank.SetGeneration(1)
	ctx, observation := s.withGeneration(stash.WithContext(ctx), blank)
	s.initializeConditions(ctx, blank)
	for _, c := range s.conditionsOf(blank) {
		switch {
		case !observation.IsManaged(c.Type):
		case c.Type == apis.ConditionReady || c.Type == apis.ConditionSucceeded:
			happy = c.Type
		default:
			dependents = append(dependents, c.Type)
		}
	}
	if len(dependents) == 0 {
		return "", nil
	}
	return happy, dependents
}

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

// onto returns the context in which the subreconciler of the step runs.
func (r *stepRun) onto(ctx context.Context) context.Context {
	s := scopeFrom(ctx)
	s.stepRun = r
	return s.onto(ctx)
}

// MustRemove reports whether a subreconciler must remove what it manages: the resource is being deleted, or the
// subreconciler is part of a step of [Steps] that is not wanted. Built-in reconcilers and the Finalize functions of a
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
