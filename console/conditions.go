// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

// Condition is a status condition of an object, as far as the recorded reconciles show it.
type Condition struct {
	Type string `json:"type"`
	// Changes are the changes, the newest first.
	Changes []ConditionChange `json:"changes"`
}

// ConditionChange is what a condition changed to.
type ConditionChange struct {
	At time.Time `json:"at"`
	// Status is empty if the condition was removed.
	Status string `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Message is empty if it is unknown.
	Message string `json:"message,omitempty"`
	// Run is the ID of the reconcile that wrote the change, or that the change caused.
	Run string `json:"run"`
}

// conditionsOf returns the conditions whose changes the runs of an object show: those that are not True first. Most
// changes are recorded twice, as a write and as the cause of the next run.
func conditionsOf(h recorder.History) []Condition {
	changes := conditionChanges{}
	for _, run := range slices.Backward(h.History) {
		for _, cause := range run.Causes {
			if cause.Type == observe.CauseObject {
				changes.add(run, timeOf(cause, run), cause.Changes)
			}
		}
		for call := range callsOf(run) {
			if call.Object == h.Object.Object && call.Error == "" {
				changes.add(run, run.Started, call.Changes)
			}
		}
	}
	conditions := []Condition{}
	for _, c := range changes {
		if len(c.Changes) == 0 { // only other fields of the condition have changed, such as its observedGeneration
			continue
		}
		slices.Reverse(c.Changes)
		conditions = append(conditions, *c)
	}
	slices.SortFunc(conditions, func(a, b Condition) int {
		return cmp.Or(cmp.Compare(conditionRank(a), conditionRank(b)), strings.Compare(a.Type, b.Type))
	})
	return conditions
}

// timeOf returns the time of a cause, or the time of its run if it is unknown.
func timeOf(cause recorder.Cause, run recorder.Run) time.Time {
	if cause.At.IsZero() {
		return run.Started
	}
	return cause.At
}

func conditionRank(c Condition) int {
	return slices.Index([]string{"False", "Unknown", "True", ""}, c.Changes[0].Status)
}

// conditionChanges are the conditions by type, with the oldest change first.
type conditionChanges map[string]*Condition

func (all conditionChanges) add(run recorder.Run, at time.Time, changes []observe.Change) {
	for _, change := range changes {
		path, what, ok := strings.Cut(change.Path, ": ")
		name, isCondition := strings.CutPrefix(path, "status.conditions[")
		if !ok || !isCondition {
			continue
		}
		name = strings.TrimSuffix(name, "]")
		if all[name] == nil {
			all[name] = &Condition{Type: name}
		}
		all[name].add(ConditionChange{At: at, Run: run.ID}, what, change)
	}
}

// add adds a change, unless it is that of before.
func (c *Condition) add(next ConditionChange, what string, change observe.Change) {
	var last ConditionChange
	if len(c.Changes) > 0 {
		last = c.Changes[len(c.Changes)-1]
	}
	next.Status, next.Reason, next.Message = last.Status, last.Reason, last.Message
	for part := range strings.SplitSeq(what, ", ") {
		field, value, _ := strings.Cut(part, " ")
		if _, after, ok := strings.Cut(value, "→"); ok {
			value = after
		}
		switch field {
		case "removed":
			next.Status, next.Reason, next.Message = "", "", ""
			c.Changes = append(c.Changes, next)
			return
		case "status":
			next.Status = value
		case "reason":
			next.Reason = value
		}
	}
	if change.Before != "" || change.After != "" {
		next.Message = decoded(change.After)
	}
	if next.Status != last.Status || next.Reason != last.Reason || next.Message != last.Message {
		c.Changes = append(c.Changes, next)
	}
}

// decoded returns the text of a JSON string, which may have been shortened.
func decoded(value string) string {
	var text string
	if err := json.Unmarshal([]byte(value), &text); err != nil {
		return strings.TrimPrefix(value, `"`)
	}
	return text
}
