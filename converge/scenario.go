// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/graph/rbac"
)

// Scenario is a reconciler and its environment: the API server, users, and other controllers.
//
// There are two ways to set up the reconciler. With New, For, Owns and Watches the scenario calls it as the workqueue
// of a controller does: each object of the kind For is a request, and so is the controller owner of each object of a
// kind in Owns. With Setup the reconciler registers itself with a manager, so that its own watches, predicates and
// options are tested as well.
type Scenario struct {
	// Scheme contains all kinds of the scenario. Required.
	Scheme *runtime.Scheme

	// New returns a reconciler, at the start and after each crash. It must return a new one each time: a crash loses the
	// memory of the process. Required, unless Setup is set.
	New func(Env) reconcile.Reconciler
	// For has the kind of the objects that are reconciled, the primary objects. Only its type matters. Required.
	For client.Object
	// Owns are kinds of objects that the reconciler of New creates. Their controller owner is reconciled when they change.
	Owns []client.Object
	// Watches are further kinds whose changes lead to requests for the reconciler of New.
	Watches []Watch
	// Filters drop events for the reconciler of New.
	Filters []Filter
	// Indexes registers field indexes of the cache for the reconciler of New.
	Indexes func(client.FieldIndexer) error

	// Setup registers controllers with a manager, at the start and after each crash. It replaces New. [EnvOf] returns the
	// other parts of the environment.
	Setup func(manager.Manager) error
	// Programs are further programs, each with a manager, caches and crashes of its own. The program of New or Setup
	// starts first, the others in their order. All faults apply to each of them.
	Programs []Program

	// CRDs are the definitions of custom kinds: their schema, defaults and validation. A custom kind without a definition
	// accepts all content, is namespaced, and has a status subresource if its Go type has a Status. Objects of a
	// definition with several versions are stored once and converted: by the webhook at /convert that Setup registers, if
	// the definition says so. With New, and before the first set-up has ended, the types of the scheme convert.
	CRDs []client.Object
	// Webhooks are MutatingWebhookConfigurations and ValidatingWebhookConfigurations: which writes the webhooks decide
	// about that New or Setup register with the manager. Without one, a webhook at a path of controller-runtime's builders
	// decides about creates and updates of its kind. Match conditions are not supported. Webhooks are available from the
	// end of the first set-up on. Therefore Given is not subject to them, and no faults are injected into their requests.
	Webhooks []client.Object
	// Roles are Roles and ClusterRoles: what the process may do. A Role applies to its namespace, or to all if it names
	// none, a ClusterRole to all objects. Other requests are answered with status 403, and fail the test with the rules
	// that are missing, all at once. A cache requires list and watch. The default allows everything. [Roles] reads them
	// from files. Rules that no run has used are advice. The admission plugin OwnerReferencesPermissionEnforcement is off.
	Roles []client.Object
	// Permissions records what the requests of the process need, in all runs. As with Roles, a cache needs list and watch,
	// and events and leader election are not simulated. Optional.
	Permissions *rbac.Recorder
	// Uncached are kinds that env.Client reads from the API server, as a manager's client does with the kinds in
	// client.CacheOptions.DisableFor.
	Uncached []client.Object
	// CacheSelectors limit the caches, as cache.Options.ByObject does. Reads from the API server are not limited.
	CacheSelectors []CacheSelector
	// ManagedFields makes the API record the managed fields of all objects, as a server does: they tell who has written
	// an object. By default it records them only for objects that were applied, because all writes take several times as
	// long with them.
	ManagedFields bool

	// Given are the objects that users have created before the controller starts for the first time, with their status.
	Given []client.Object
	// Steps are the steps of the users. The default is to wait until the controller is idle, to delete the Given objects
	// of the kind For, and to wait again.
	Steps []Step
	// Disturbances are further actions of users, which they may take at any moment: [FaultDisturbance] performs one
	// between any two requests, and when the controller is idle. One that is not possible then, for example a change of
	// what does not exist yet, is not performed. In the end the state must be as without it, except for the objects that
	// it creates. The reconciler must not delete these, and Desired must accept them. Mask what it need not restore.
	// [States] performs them between changes of the spec, too. Their names must differ.
	Disturbances []Step
	// World are other controllers and systems. The garbage collector and the controller of namespaces always run.
	World []Actor
	// Reset is called before each run, to reset the state outside of the scenario.
	Reset func()
	// Outside returns the content of the external systems that [Env.Call] stands for, for example of a fake. It is encoded
	// as JSON at each Settle, while no call runs, and compared with the state of the run without faults. If it is an
	// object or a map, each of its keys is compared like an object of the API, and one that Reset has not left there must
	// not remain when all primary objects were deleted. Masks without an Object apply to it. With Outside, a call that
	// changes the content is a write.
	Outside func() any

	// Desired returns an error if a state is wrong. It is called at each Settle. The default compares the state to the
	// state of the run without faults. With Desired a reconciler may choose names: only objects whose names also exist
	// without faults can be duplicates, and Desired decides what may exist in the end.
	Desired func(State) error
	// Masks are fields that may differ from the run without faults.
	Masks []Mask
	// Consistency is the guarantee of the client for its reads.
	Consistency Consistency
	// Space describes to [States] which specs exist.
	Space Space

	// Off turns oracles off. The value is the reason, which is required and printed.
	Off map[Oracle]string
	// Without disables faults. The value is the reason, which is required and printed.
	Without map[Fault]string
	// Except disables faults and turns oracles off for some objects, or in some steps.
	Except []Exception
	// NoRollback is the reason why [Upgrade] does not go back from the new version to the old one, as it does by default.
	// It is printed.
	NoRollback string
	// With enables faults that are disabled by default.
	With []Fault
	// Strict makes advice fail.
	Strict bool
	// MaxReconciles limits the reconciles of a Settle without faults. The default is 200.
	MaxReconciles int
	// Patience limits the virtual time of a Settle. Requests that are requeued after more than half of it are not awaited.
	// The default is 24 hours.
	Patience time.Duration

	// recorded are the faults of a recording, or nil.
	recorded *inject.Recorded
}

// CacheSelector limits the cache of a kind to the objects whose labels match.
type CacheSelector struct {
	// Object has the kind. Only its type matters. Required.
	Object client.Object
	// Label selects objects. Required.
	Label labels.Selector
}

// Watch is a kind whose changes lead to requests.
type Watch struct {
	// Object has the kind that is watched.
	Object client.Object
	// Requests returns the requests for an object. Required, unless NewRequests is set.
	Requests handler.MapFunc
	// NewRequests returns a function that replaces Requests and may use the environment, for example the client. It is
	// called after New, at the start and after each crash.
	NewRequests func(Env) handler.MapFunc
}

// Consistency is the guarantee of a client for its reads.
type Consistency int

const (
	// None is the guarantee of the client of a manager: it reads from caches, which are stale independently of each other.
	None Consistency = iota
	// ReadYourWrites is the guarantee that reads wait until the cache has the writes of the same client, as the
	// experimental option of controller-runtime's client does.
	ReadYourWrites
	// Gate is the guarantee that each request waits until the caches have the writes of earlier requests of the same
	// name. The reconcilers of this module wait by themselves. For others it shows whether waiting helps.
	Gate
	// TimeTravel is None, and a cache may start with an old list after a crash, as with API servers that answer a first
	// list from their own cache. The list is one to three events old, or from before one of the last three creations,
	// deletions, or changes of the generation of a primary object.
	TimeTravel
)

// Mask is a field that may differ from the run without faults.
type Mask struct {
	// Object has the kind of the field. The default is all kinds.
	Object client.Object
	// Field is a path, for example "status.lastSyncTime" or "metadata.annotations[example.com/nonce]". A path through a
	// list applies to all its items, for example "status.conditions.message", or to the one that it names as messages do,
	// for example "status.conditions[type=Ready].message".
	Field string
}

// Program is a further program of a scenario, with a manager of its own.
type Program struct {
	// Name is the name of its client, which is also the default of its field managers, and its name in messages. Required.
	Name string
	// Setup registers controllers with its manager, at the start and after each crash. Required.
	Setup func(manager.Manager) error
	// Webhooks are configurations of the webhooks that Setup registers, as [Scenario.Webhooks] are.
	Webhooks []client.Object
	// Uncached are kinds that its client reads from the API server, as [Scenario.Uncached] are.
	Uncached []client.Object
	// Roles are what it may do, as [Scenario.Roles] are.
	Roles []client.Object
	// Permissions records what its requests need, as [Scenario.Permissions] does.
	Permissions *rbac.Recorder
	// Assigned reports whether a primary object, as it is stored, is assigned to this program, if the objects are divided
	// among the programs that have this field, for example as package shards does. It must not change the object. See
	// [OracleAssignment]. Optional.
	Assigned func(primary client.Object) bool
}

// Filter drops events for the reconciler of New, as a predicate of For, Owns or Watches does.
type Filter struct {
	// Object has the kind of the events. The default is all kinds in For, Owns and Watches.
	Object client.Object
	// Predicate returns false for an event that leads to no request. All runs share it, therefore it must not have state.
	// Required.
	Predicate predicate.Predicate
}
