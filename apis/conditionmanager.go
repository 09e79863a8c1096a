// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/internal/engine/observation"
	"trueup.dev/internal/objects/conditions"
)

// ConditionManager changes the conditions of one status and derives the happy condition from its dependents. The happy
// condition is True if all dependents are True, False if any dependent is False, and Unknown otherwise.
//
// Conditions are kept sorted by type. A condition whose status changes gets the time of the manager as its
// lastTransitionTime, truncated to the second; a condition that only gets a new reason or message keeps its time, as
// metav1.Condition specifies.
//
// A message above 32,768 bytes is cut, and a reason with characters that the API server refuses is replaced: it would
// refuse the whole status.
//
// A manager is not safe for concurrent use, because the status is not.
type ConditionManager interface {
	// IsHappy reports whether the happy condition is True.
	IsHappy() bool

	// GetCondition returns a copy of the condition of type t, nil if it does not exist.
	GetCondition(t string) *metav1.Condition

	// SetCondition adds the condition, or replaces the one of the same type. Its lastTransitionTime is ignored. Unlike the
	// Mark methods, it never changes another condition, not even the happy condition.
	SetCondition(condition metav1.Condition)

	// ClearCondition removes the condition of type t, if it exists. It returns an error for the happy condition and its
	// dependents, which cannot be removed.
	ClearCondition(t string) error

	// MarkTrue sets the condition of type t to True. If all dependents are True, the happy condition becomes True, with
	// the happy reason of the set and no message. In a controller, its observedGeneration is then the oldest
	// observedGeneration of its dependents. The message is formatted as by fmt.Sprintf.
	MarkTrue(t string, reason, messageFormat string, messageA ...interface{})

	// MarkUnknown sets the condition of type t to Unknown. If t is a dependent, the happy condition becomes Unknown with
	// the same reason and message, unless a dependent is False: then the happy condition is False. The message is
	// formatted as by fmt.Sprintf.
	MarkUnknown(t string, reason, messageFormat string, messageA ...interface{})

	// MarkFalse sets the condition of type t to False. If t is a dependent, the happy condition becomes False with the
	// same reason and message. The message is formatted as by fmt.Sprintf.
	MarkFalse(t string, reason, messageFormat string, messageA ...interface{})

	// InitializeConditions adds missing dependents and the happy condition as Unknown with reason Initializing. If the
	// happy condition is already True, missing dependents are added as True.
	InitializeConditions()
}

// reasonInitializing is the reason of conditions that were not observed yet.
const reasonInitializing = "Initializing"

type conditionManager struct {
	set    ConditionSet
	status ConditionsAccessor
	now    time.Time
	// observation is the observation of the reconciled resource, nil if unknown.
	observation *observation.Observation
}

func (m *conditionManager) IsHappy() bool {
	return ConditionIsTrue(m.find(m.set.happyType))
}

func (m *conditionManager) GetCondition(t string) *metav1.Condition {
	return m.find(t).DeepCopy()
}

// find returns the condition of type t, which is not a copy and must not be changed, or nil if it does not exist.
func (m *conditionManager) find(t string) *metav1.Condition {
	if m.status == nil {
		return nil
	}
	return findCondition(m.status.GetConditions(), t)
}

func (m *conditionManager) SetCondition(condition metav1.Condition) {
	if m.status == nil {
		return
	}
	if condition.ObservedGeneration == 0 {
		condition.ObservedGeneration = m.observation.Generation()
	} else {
		m.observation.Manage(false, condition.Type)
	}
	m.put(condition)
}

// put adds or replaces a condition.
func (m *conditionManager) put(condition metav1.Condition) {
	if m.status == nil {
		return
	}
	given := condition.Reason
	if condition = conditions.Mend(condition); given == "" && m.observation == nil {
		condition.Reason = "" // users' tests compare conditions without a reason
	}
	// The API stores times in seconds. With a higher precision the resource would differ from the stored one.
	condition.LastTransitionTime = metav1.NewTime(m.now).Rfc3339Copy()
	current := m.status.GetConditions()
	changed := make([]metav1.Condition, 0, len(current)+1)
	for _, c := range current {
		if c.Type != condition.Type {
			changed = append(changed, c)
			continue
		}
		// A new reason or message is not a transition.
		if c.Status == condition.Status && !c.LastTransitionTime.IsZero() {
			condition.LastTransitionTime = c.LastTransitionTime
		}
		if sameButForTime(c, condition) {
			return
		}
	}
	m.store(append(changed, condition))
}

func sameButForTime(a, b metav1.Condition) bool {
	a.LastTransitionTime = b.LastTransitionTime
	return a == b
}

func (m *conditionManager) ClearCondition(t string) error {
	if m.status == nil {
		return nil
	}
	if t == m.set.happyType || slices.Contains(m.set.dependents, t) {
		return errors.New("Clearing terminal conditions not implemented") //nolint:staticcheck // users compare this text
	}
	current := m.status.GetConditions()
	conditions := make([]metav1.Condition, 0, len(current))
	for _, c := range current {
		if c.Type != t {
			conditions = append(conditions, c)
		}
	}
	if len(conditions) != len(current) {
		m.store(conditions)
	}
	return nil
}

func (m *conditionManager) MarkTrue(t string, reason, messageFormat string, messageA ...interface{}) {
	m.mark(t, metav1.ConditionTrue, reason, fmt.Sprintf(messageFormat, messageA...))
	if len(m.set.dependents) == 0 {
		return
	}
	for _, dependent := range m.set.dependents {
		if !ConditionIsTrue(m.find(dependent)) {
			return
		}
	}
	m.put(metav1.Condition{
		Type: m.set.happyType, Status: metav1.ConditionTrue, Reason: m.set.happyReason,
		ObservedGeneration: m.oldestGeneration(),
	})
}

// oldestGeneration returns the oldest generation that the dependents are about, or 0 if the generation of the resource
// is unknown. A step that has not run for a new generation must not be counted as if it had. A dependent without a
// generation may be about any.
func (m *conditionManager) oldestGeneration() int64 {
	oldest := m.observation.Generation()
	if oldest == 0 {
		return 0
	}
	for _, dependent := range m.set.dependents {
		if c := m.find(dependent); c != nil && c.ObservedGeneration < oldest {
			// After a reconcile without an error, all steps have run.
			m.observation.Manage(true, m.set.happyType)
			m.observation.Manage(true, m.set.dependents...)
			m.observation.Summarize(m.set.happyType)
			oldest = max(c.ObservedGeneration, 1)
		}
	}
	return oldest
}

func (m *conditionManager) MarkUnknown(t string, reason, messageFormat string, messageA ...interface{}) {
	message := fmt.Sprintf(messageFormat, messageA...)
	m.mark(t, metav1.ConditionUnknown, reason, message)
	for _, dependent := range m.set.dependents {
		if ConditionIsFalse(m.find(dependent)) {
			// a known failure takes precedence over an unknown state
			if !ConditionIsFalse(m.find(m.set.happyType)) {
				m.mark(m.set.happyType, metav1.ConditionFalse, reason, message)
			}
			return
		}
	}
	if slices.Contains(m.set.dependents, t) {
		m.mark(m.set.happyType, metav1.ConditionUnknown, reason, message)
	}
}

func (m *conditionManager) MarkFalse(t string, reason, messageFormat string, messageA ...interface{}) {
	message := fmt.Sprintf(messageFormat, messageA...)
	m.mark(t, metav1.ConditionFalse, reason, message)
	if slices.Contains(m.set.dependents, t) {
		m.mark(m.set.happyType, metav1.ConditionFalse, reason, message)
	}
}

func (m *conditionManager) InitializeConditions() {
	m.observation.Manage(true, m.set.happyType)
	m.observation.Manage(true, m.set.dependents...)
	if m.find(m.set.happyType) == nil {
		m.mark(m.set.happyType, metav1.ConditionUnknown, reasonInitializing, "")
	}
	// the dependents of a happy resource were True; missing ones are new
	initial := metav1.Condition{
		Status: metav1.ConditionUnknown, Reason: reasonInitializing, ObservedGeneration: m.observation.Generation(),
	}
	if happy := m.find(m.set.happyType); ConditionIsTrue(happy) {
		initial.Status, initial.ObservedGeneration = metav1.ConditionTrue, happy.ObservedGeneration
	}
	for _, dependent := range m.set.dependents {
		if m.find(dependent) == nil {
			initial.Type = dependent
			m.put(initial)
		}
	}
}

// mark sets one condition and no other.
func (m *conditionManager) mark(t string, status metav1.ConditionStatus, reason, message string) {
	m.SetCondition(metav1.Condition{Type: t, Status: status, Reason: reason, Message: message})
}

func (m *conditionManager) store(conditions []metav1.Condition) {
	slices.SortFunc(conditions, func(a, b metav1.Condition) int {
		return strings.Compare(a.Type, b.Type)
	})
	m.status.SetConditions(conditions)
}
