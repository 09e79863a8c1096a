// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Scenario is a reconciler, the world around it, and what users do in it.
//
// There are two ways to tell about the reconciler. With New, For, Owns and Watches the scenario calls it by itself, as
// the workqueue of a controller would: each object of the kind For is a request, and so is the controller owner of each
// object of a kind in Owns. With Setup the reconciler registers itself with a manager, so that its own watches,
// predicates and options are put to the test as well.
type Scenario struct {
	// Scheme knows all kinds of the scenario. Required.
	Scheme *runtime.Scheme

	// New returns a reconciler, at the start and after each crash. It must be a new one each time: what a process has in
	// memory is lost with it. Required, unless there is Setup.
	New func(Env) reconcile.Reconciler
	// For is the kind of the objects that are reconciled. Required; only the type matters, and with Setup it tells which
	// objects are the primary ones.
	For client.Object
	// Owns are kinds of objects that New's reconciler creates. Their controller owner is reconciled when they change.
	Owns []client.Object
	// Watches are further kinds whose changes lead to requests for New's reconciler.
	Watches []Watch
	// Indexes registers field indexes of the cache for New's reconciler.
	Indexes func(client.FieldIndexer) error

	// Setup registers controllers with a manager, at the start and after each crash. Instead of New. [EnvOf] returns the
	// rest of what there is.
	Setup func(manager.Manager) error

	// CRDs are the definitions of custom kinds: their schema, defaults and validation. A custom kind without one accepts
	// everything, has a status sub resource if its Go type has a Status, and is in a namespace.
	CRDs []client.Object
	// Uncached are kinds that env.Client reads from the API server, as a manager's client does with the kinds in
	// client.CacheOptions.DisableFor.
	Uncached []client.Object

	// Given are the objects that exist before the controller starts for the first time, as users have created them. Those
	// with a status get it.
	Given []client.Object
	// Steps are what users do. The default is to wait until all is quiet, to delete the Given objects of the kind For, and
	// to wait again.
	Steps []Step
	// World are other controllers and systems. The garbage collector and the controller of namespaces are always there.
	World []Actor
	// Reset is called before each run, to bring whatever lives outside of the scenario back to its beginning.
	Reset func()

	// Desired tells what is wrong with a state when all is quiet, after each Settle. The default is that it is the one of
	// the run without faults. With Desired a reconciler may choose names, so that only what it also creates without faults
	// can be a duplicate, and what may be left over in the end is for Desired to say.
	Desired func(State) error
	// Masks are fields that may differ from the run without faults.
	Masks []Mask
	// Consistency is what the client of the reconciler promises.
	Consistency Consistency

	// Off turns oracles off. The value is the reason, which is required and printed.
	Off map[Oracle]string
	// Without leaves faults out. The value is the reason, which is required and printed.
	Without map[Fault]string
	// With adds faults that are left out unless they are asked for.
	With []Fault
	// Strict has advice, and requests without an effect, fail.
	Strict bool
	// MaxReconciles is how many reconciles a settling may take without faults. Default 200.
	MaxReconciles int
	// Patience is how much time a settling may take at most, in the time of the scenario, which costs little. What is to
	// come back by itself only after more than half of it is not waited for. Default 24 h.
	Patience time.Duration
}

// Watch is a kind whose changes lead to requests.
type Watch struct {
	// Object is of the kind that is watched.
	Object client.Object
	// Requests returns the requests for an object. Required.
	Requests handler.MapFunc
}

// Consistency is what a client promises about its reads.
type Consistency int

const (
	// None is the client of a manager: it reads from caches, which lag behind, each kind by itself.
	None Consistency = iota
	// ReadYourWrites is a client whose reads wait until the cache has what the same client has written, as the
	// experimental option of controller-runtime's client does.
	ReadYourWrites
	// Gate has each request wait until the caches have what earlier requests of the same name have written. The
	// reconcilers of this module do that by themselves. For others it shows whether that would help.
	Gate
	// TimeTravel is None, and a cache may begin with an old list after a crash, as it does with API servers that answer a
	// first list from their own cache.
	TimeTravel
)

// Mask is a field that may differ from the run without faults.
type Mask struct {
	// Object is of the kind that has the field. Default: all kinds.
	Object client.Object
	// Field is a path, for example "status.lastSyncTime" or "metadata.annotations[example.com/nonce]". A path through a
	// list is one through all its items.
	Field string
}
