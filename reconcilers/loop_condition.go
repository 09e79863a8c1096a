// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// loopConditionTime is the time after the last delay for which a resource has the condition of a hot loop.
const loopConditionTime = time.Hour

// Reasons of events and conditions about hot loops.
const (
	reasonHotLoop       = "HotLoop"
	reasonFieldConflict = "FieldConflict"
)

// loopConditions holds the conditions of resources in hot loops. It is empty unless Config.LoopCondition is set. The
// zero value is ready to use.
type loopConditions struct {
	mu    sync.Mutex
	known map[Request]loopCondition
}

type loopCondition struct {
	reason, message string
	until           time.Time
}

// set records that the resource is in a hot loop. It drops the loops of other resources that have ended.
func (l *loopConditions) set(config Config, req Request, reason, message string) {
	if config.LoopCondition == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for other, known := range l.known {
		if now.After(known.until) {
			delete(l.known, other)
		}
	}
	if l.known == nil {
		l.known = map[Request]loopCondition{}
	}
	l.known[req] = loopCondition{reason: reason, message: message, until: now.Add(loopConditionTime)}
}

// delayed records that the hot loop of a resource goes on.
func (l *loopConditions) delayed(config Config, req Request) {
	if config.LoopCondition == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.known[req]; ok {
		known.until = time.Now().Add(loopConditionTime)
		l.known[req] = known
	}
}

// get returns the current hot loop of a resource, and the time until it ends.
func (l *loopConditions) get(config Config, req Request) (known loopCondition, remaining time.Duration) {
	if config.LoopCondition == "" {
		return loopCondition{}, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known = l.known[req]
	return known, max(0, time.Until(known.until))
}

// requeue returns the result of a request that did not fail. A resource in a hot loop is requeued when its condition is
// due to be removed.
func (l *loopConditions) requeue(config Config, req Request, result Result) Result {
	_, remaining := l.get(config, req)
	if remaining > 0 && !result.Requeue && //nolint:staticcheck // reconcilers still set it
		(result.RequeueAfter == 0 || result.RequeueAfter > remaining) {
		result.RequeueAfter = remaining
	}
	return result
}

// setLoopCondition sets the condition of a resource in a hot loop, or removes it.
func (s *statusType) setLoopCondition(obj client.Object, config Config, loops *loopConditions, req Request) {
	conditions := s.Conditions(obj)
	if config.LoopCondition == "" || conditions == nil {
		return
	}
	if loop, remaining := loops.get(config, req); remaining > 0 {
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: config.LoopCondition, Status: metav1.ConditionTrue, Reason: loop.reason, Message: loop.message,
		})
	} else if meta.FindStatusCondition(*conditions, config.LoopCondition) != nil {
		meta.RemoveStatusCondition(conditions, config.LoopCondition)
	}
}
