// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/world"
)

// Pace is how often requests are reconciled, and how long users wait.
type Pace struct {
	// Idle counts the reconciles of a request without a change since the last change.
	Idle map[world.RequestOf]IdleCount
	// LastChange is the time of the last change.
	LastChange time.Time
	// SettleStart is when the present Settle began, and recent counts the reconciles since then.
	SettleStart time.Time
	Recent      int
	// SleepUntil is the end of the present Sleep of the users, or zero.
	SleepUntil time.Time
}

// Sleeping reports whether users sleep.
func (p *Pace) Sleeping() bool { return !p.SleepUntil.IsZero() }

// IdleCount counts the reconciles of a request without a change.
type IdleCount struct {
	Times int
	// since is the end of the last one whose number is a multiple of MaxPolls, and took is how long those MaxPolls took.
	since time.Time
	took  time.Duration
}

// hot reports whether the request is reconciled again and again without a delay.
func (c IdleCount) hot() bool { return c.Times >= MaxPolls && c.took < hotTime }

// Next counts another reconcile. The last change was at a time.
func (c IdleCount) Next(lastChange time.Time) IdleCount {
	if c.Times == 0 {
		c.since = lastChange
	}
	c.Times++
	if c.Times%MaxPolls == 0 {
		c.took, c.since = time.Since(c.since), time.Now()
	}
	return c
}

// A polling request is given up after PollTime, or after MaxPolls reconciles without a change.
const (
	PollTime = 15 * time.Second
	MaxPolls = 50
)

// hotTime is the least time that MaxPolls reconciles take, unless the request is a hot loop.
const hotTime = time.Second

// Queues are the requests of a run that wait or are being reconciled, and what caches have handed out.
type Queues interface {
	// Running returns the first running reconcile, or nil.
	Running() *world.Reconcile
	// FirstQueued returns the first queued request that matches, and IsQueued reports whether a request is queued.
	FirstQueued(matches func(world.RequestOf) bool) (world.RequestOf, bool)
	IsQueued(req world.RequestOf) bool
	// Quiet reports whether no request is queued, and nothing can lead to one.
	Quiet() bool
	// FirstHandedOut returns the first object that matches of those that caches have handed out without a copy, with its
	// kind.
	FirstHandedOut(matches func(Shared) bool) (schema.GroupVersionKind, Shared, bool)
}

// Shared is an object that the reconciler received without a copy, and its content at that time.
type Shared struct{ Given, Stored client.Object }
