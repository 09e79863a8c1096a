// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// State is how ready an object is.
type State string

const (
	// Ready means that the object is as its spec describes, and can be used.
	Ready State = "Ready"
	// Progressing means that the object is not ready, and that its controller works on it.
	Progressing State = "Progressing"
	// Failed means that the object is not ready, and that its controller reports a failure. It may become ready later, for
	// example after a change of its spec.
	Failed State = "Failed"
	// Terminating means that the object is being deleted.
	Terminating State = "Terminating"
	// Unknown means that the object does not say whether it is ready, for example a custom resource without a status. It
	// needs a rule of its own.
	Unknown State = "Unknown"
)

// Reasons of this package. Custom resources have the reasons of their conditions instead.
const (
	// ReasonReady is the reason of objects that are ready.
	ReasonReady = "Ready"
	// ReasonNotObserved means that the status describes an older generation of the object.
	ReasonNotObserved = "NotObserved"
	// ReasonUpdating means that parts of a workload do not have the current specification yet.
	ReasonUpdating = "Updating"
	// ReasonUnavailable means that parts of a workload have the current specification, and are not available.
	ReasonUnavailable = "Unavailable"
	// ReasonProgressDeadlineExceeded means that a rollout made no progress for too long.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonPending means that the object waits for its controller.
	ReasonPending = "Pending"
	// ReasonFailed means that the object failed and gave no reason.
	ReasonFailed = "Failed"
	// ReasonTerminating means that the object is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonNoRule means that no rule decides whether an object of this kind is ready.
	ReasonNoRule = "NoRule"
)

// Readiness reports how ready an object is.
type Readiness struct {
	// State is how ready the object is.
	State State
	// Reason is one word in CamelCase, valid as the reason of a condition. It is never empty.
	Reason string
	// Message says what is waited for, for example "2 of 3 replicas are available". It does not contain the name of the
	// object. The same object always has the same message: it contains no time and no duration. It may be empty if the
	// object is ready.
	Message string
}

// IsReady reports whether the state is Ready.
func (r Readiness) IsReady() bool { return r.State == Ready }

// String returns the state and the message.
func (r Readiness) String() string {
	if r.Message == "" {
		return string(r.State)
	}
	return string(r.State) + ": " + r.Message
}

// Rule reports how ready objects are. It must not change the object, and must be safe for concurrent use.
type Rule interface {
	Of(obj client.Object) Readiness
}

// Func is a [Rule] that is a function.
type Func func(obj client.Object) Readiness

// Of calls the function.
func (f Func) Of(obj client.Object) Readiness { return f(obj) }

// Default is the rule that [Of] applies.
var Default Rule = Func(Of)

// Exists is the rule for objects that are ready when they exist and are not being deleted, for example custom resources
// without a status.
var Exists Rule = Func(func(obj client.Object) Readiness {
	if obj.GetDeletionTimestamp() != nil {
		return terminating(obj)
	}
	return ready("")
})

func ready(format string, args ...any) Readiness {
	return Readiness{State: Ready, Reason: ReasonReady, Message: fmt.Sprintf(format, args...)}
}

func progressing(reason, format string, args ...any) Readiness {
	return Readiness{State: Progressing, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func failed(reason, message string) Readiness {
	if reason == "" {
		reason = ReasonFailed
	}
	return Readiness{State: Failed, Reason: reason, Message: message}
}

func unknown(format string, args ...any) Readiness {
	return Readiness{State: Unknown, Reason: ReasonNoRule, Message: fmt.Sprintf(format, args...)}
}
