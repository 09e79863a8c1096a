// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/informer"
	"trueup.dev/operator"
	"trueup.dev/shards"
)

// AppConfig configures an [App].
type AppConfig struct {
	// Name of the app, a DNS name such as myapp or myapp.example.com. It must never change, because it is part of the
	// names of finalizers and of the lease. Defaults to the group of the ManagedKinds, if all are in one group; set it if
	// several apps handle kinds of the group. Otherwise it is required if a finalizer or a lease is named after it.
	Name string

	// KubeConfig is the connection to the cluster. Required by Run.
	KubeConfig rest.Config

	// Scheme has the Go types of objects. The types of all kinds of the app are added to it. Defaults to a new scheme
	// with the kinds of client-go.
	Scheme *runtime.Scheme

	// Clients are the clients that handlers were made with. Optional.
	Clients *Clients

	// ManagedKinds are the kinds of the app. Add an entry for each version that has a Mutator or a Validator. Only one
	// version of a kind may have a handler.
	ManagedKinds []AppManagedKind

	// UnmanagedKinds are kinds of other owners that the app watches. A kind may be listed more than once, for example
	// with different selectors.
	UnmanagedKinds []AppUnmanagedKind

	// Converters convert objects between versions of a kind. See [App.CustomResourceConversion].
	Converters map[schema.GroupKind]Converter

	// VersionedCustomRoutes are, by version, handlers of HTTP requests for a namespace or for the cluster, see
	// [AppVersionRouteHandlers].
	VersionedCustomRoutes map[string]AppVersionRouteHandlers

	// InformerConfig applies to all kinds, unless their options override it.
	InformerConfig AppInformerConfig

	// LeaderElection ensures that only one replica of the app calls handlers.
	LeaderElection LeaderElection

	// Shard divides the objects among several replicas that call handlers at the same time, see package
	// trueup.dev/shards. It replaces LeaderElection, whose durations apply to the Lease of the shard. Kinds that are not
	// among its Kinds are handled by each replica. Defaults to nil: one replica is elected.
	Shard *shards.Shard

	// Webhooks configures the webhook server, if the app has webhooks. Defaults to port 9443 with the certificate
	// tls.crt and the key tls.key in CertDir, which are reloaded when they change.
	Webhooks webhook.Options

	// MetricsBindAddress is the address of the metrics server, which serves /metrics. Defaults to :8080; "0" disables
	// it. On a loopback address, it only answers the same machine or pod, and no proxy. Behind a proxy that checks
	// permissions, such as kube-rbac-proxy, set Metrics.FilterProvider to nil with ManagerOptions.
	MetricsBindAddress string

	// HealthBindAddress is the address of the health server, which serves /healthz and /readyz. Defaults to :8081; "0"
	// disables it.
	HealthBindAddress string

	// GracefulShutdownTimeout limits the time that calls of handlers may take after the app was stopped, which cancels
	// their context. Defaults to 30 seconds; a negative value means no limit.
	GracefulShutdownTimeout time.Duration

	// ManagerOptions may change the options of the manager, for options that this config does not have. Optional.
	ManagerOptions func(options *ctrl.Options)
}

// AppInformerConfig configures how kinds are watched.
type AppInformerConfig struct {
	// InformerOptions selects the objects to watch. Namespaces are ignored for cluster-scoped kinds.
	InformerOptions informer.Options
	// InformerSupplier makes informers. Defaults to [informer.DefaultSupplier].
	InformerSupplier informer.Supplier
	// RetryPolicy decides when to call handlers again after an error. Defaults to [operator.DefaultRetryPolicy].
	RetryPolicy operator.RetryPolicy
	// RetryDequeuePolicy decides whether a change replaces a retry. Defaults to
	// [operator.OpinionatedRetryDequeuePolicy].
	RetryDequeuePolicy operator.RetryDequeuePolicy
	// FinalizerSupplier names the finalizers of kinds. Defaults to `<group>/<app>-<plural>`, with `core` for the core
	// group.
	FinalizerSupplier operator.FinalizerSupplier
	// FairNamespaces makes the namespaces take turns in the queue of each kind, see [trueup.dev/reconcilers.Config].
	// Defaults to false.
	FairNamespaces bool
}

// LeaderElection configures the election of one of several replicas. The app releases the lease when it stops, after
// the last call of a handler has ended, so that the next leader does not wait until the lease expires. A call that
// takes longer than GracefulShutdownTimeout is not waited for: the process must end when Run returns, or the call
// continues beside the new leader. If the process does not end, set LeaderElectionReleaseOnCancel to false in
// ManagerOptions.
type LeaderElection struct {
	// Disabled disables the election: every replica calls handlers. Defaults to false. Without a Namespace the
	// election is also disabled, which is logged.
	Disabled bool
	// Namespace is the namespace of the lease. Defaults to the namespace of the pod that the app runs in; outside of a
	// pod it has no default.
	Namespace string
	// ID is the name of the lease. Defaults to the name of the app.
	ID string
	// LeaseDuration is the time that other replicas wait for a leader that does not renew the lease. Defaults to 15
	// seconds.
	LeaseDuration time.Duration
	// RenewDeadline is the time that a leader tries to renew the lease before it stops. Defaults to 10 seconds.
	RenewDeadline time.Duration
	// RetryPeriod is the time between attempts to get or renew the lease. Defaults to 2 seconds.
	RetryPeriod time.Duration
}
