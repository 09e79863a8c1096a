// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/internal/observed"
)

// ConditionManager changes the conditions of one status and keeps the happy
// condition in step with its dependents: it is True when all of them are, False
// as soon as one is, and Unknown otherwise.
//
// Conditions are kept sorted by type. A condition whose status changes gets the
// time of the manager as its lastTransitionTime, truncated to the second; one
// that only gets a new reason or message keeps its time, as metav1.Condition
// has it.
//
// A manager is not safe for concurrent use, as the status is not.
type ConditionManager interface {
	// IsHappy reports whether the happy condition is True.
	IsHappy() bool

	// GetCondition returns a copy of the condition of type t, nil when there is
	// none.
	GetCondition(t string) *metav1.Condition

	// SetCondition adds the condition, or replaces the one of the same type. Its
	// lastTransitionTime is ignored. Unlike the Mark methods it never touches
	// another condition, the happy one included.
	SetCondition(condition metav1.Condition)

	// ClearCondition removes the condition of type t, if there is one. The happy
	// condition and its dependents cannot be removed, that is an error.
	ClearCondition(t string) error

	// MarkTrue sets the condition of type t to True. When all dependents are True
	// the happy condition becomes True as well, with the happy reason of the set
	// and no message. The message is formatted as by fmt.Sprintf.
	MarkTrue(t string, reason, messageFormat string, messageA ...interface{})

	// MarkUnknown sets the condition of type t to Unknown. If t is a dependent the
	// happy condition becomes Unknown as well, with the same reason and message,
	// unless a dependent is False: then it stays, or becomes, False. The message
	// is formatted as by fmt.Sprintf.
	MarkUnknown(t string, reason, messageFormat string, messageA ...interface{})

	// MarkFalse sets the condition of type t to False. If t is a dependent the
	// happy condition becomes False as well, with the same reason and message. The
	// message is formatted as by fmt.Sprintf.
	MarkFalse(t string, reason, messageFormat string, messageA ...interface{})

	// InitializeConditions adds the happy condition and the dependents that are
	// missing, as Unknown with reason Initializing. Where the happy condition is
	// True already, missing dependents are added as True.
	InitializeConditions()
}

// reasonInitializing is the reason of conditions nothing was observed for yet.
const reasonInitializing = "Initializing"

type conditionManager struct {
	set    ConditionSet
	status ConditionsAccessor
	now    time.Time
	// observation is that of the reconciled resource, nil where it is not known.
	observation *observed.Observation
}

func (m *conditionManager) IsHappy() bool {
	return ConditionIsTrue(m.GetCondition(m.set.happyType))
}

func (m *conditionManager) GetCondition(t string) *metav1.Condition {
	if m.status == nil {
		return nil
	}
	return findCondition(m.status.GetConditions(), t)
}

func (m *conditionManager) SetCondition(condition metav1.Condition) {
	if m.status == nil {
		return
	}
	// The API has times in seconds. With a finer one the resource would differ
	// from what is read back.
	condition.LastTransitionTime = metav1.NewTime(m.now).Rfc3339Copy()
	if condition.ObservedGeneration == 0 {
		condition.ObservedGeneration = m.observation.Generation()
	} else {
		m.observation.Manage(false, condition.Type)
	}
	current := m.status.GetConditions()
	conditions := make([]metav1.Condition, 0, len(current)+1)
	for _, c := range current {
		if c.Type != condition.Type {
			conditions = append(conditions, c)
			continue
		}
		// A new reason or message is no transition.
		if c.Status == condition.Status && !c.LastTransitionTime.IsZero() {
			condition.LastTransitionTime = c.LastTransitionTime
		}
		if sameButForTime(c, condition) {
			return
		}
	}
	m.store(append(conditions, condition))
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
		if !ConditionIsTrue(m.GetCondition(dependent)) {
			return
		}
	}
	m.mark(m.set.happyType, metav1.ConditionTrue, m.set.happyReason, "")
}

func (m *conditionManager) MarkUnknown(t string, reason, messageFormat string, messageA ...interface{}) {
	message := fmt.Sprintf(messageFormat, messageA...)
	m.mark(t, metav1.ConditionUnknown, reason, message)
	for _, dependent := range m.set.dependents {
		if ConditionIsFalse(m.GetCondition(dependent)) {
			// something known to be wrong outweighs something unknown
			if !ConditionIsFalse(m.GetCondition(m.set.happyType)) {
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
	if m.GetCondition(m.set.happyType) == nil {
		m.mark(m.set.happyType, metav1.ConditionUnknown, reasonInitializing, "")
	}
	// a happy resource has passed its dependents, those it does not know are new
	status := metav1.ConditionUnknown
	if m.IsHappy() {
		status = metav1.ConditionTrue
	}
	for _, dependent := range m.set.dependents {
		if m.GetCondition(dependent) == nil {
			m.mark(dependent, status, reasonInitializing, "")
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
