// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/operator"
)

// AppConfig is what an [App] is made of.
type AppConfig struct {
	// Name of the app, a DNS name such as myapp or myapp.example.com. It is part of the names of finalizers: it must never
	// change. Required.
	Name string

	// KubeConfig leads to the cluster. Required.
	KubeConfig rest.Config

	// Scheme knows the Go types of objects. Those of all kinds of the app are added to it. Defaults to a new one with the
	// kinds of client-go.
	Scheme *runtime.Scheme

	// Clients are those that handlers were made with. Optional.
	Clients *Clients

	// ManagedKinds are the kinds of the app. Each version that has a Mutator or a Validator is an entry; of all versions
	// of a kind just one has a handler.
	ManagedKinds []AppManagedKind

	// UnmanagedKinds are kinds of others that the app watches. A kind may be there more than once, with different
	// selectors for example.
	UnmanagedKinds []AppUnmanagedKind

	// Converters convert objects between versions of a kind. See [App.CustomResourceConversion].
	Converters map[schema.GroupKind]Converter

	// InformerConfig is for all kinds, unless their options say otherwise.
	InformerConfig AppInformerConfig

	// LeaderElection makes sure that of all replicas of the app only one calls handlers.
	LeaderElection LeaderElection

	// Webhooks is how webhooks are served, if there are any. Defaults to port 9443 with the certificate tls.crt and the
	// key tls.key in CertDir, which are read again when they change.
	Webhooks webhook.Options

	// MetricsBindAddress is where metrics are served, under /metrics. Defaults to :8080; "0" serves none.
	MetricsBindAddress string

	// HealthBindAddress is where /healthz and /readyz are served. Defaults to :8081; "0" serves none.
	HealthBindAddress string

	// GracefulShutdownTimeout is how long calls of handlers may take to end after the app was stopped, which ends their
	// context. Defaults to 30 seconds; less than 0 is without end.
	GracefulShutdownTimeout time.Duration

	// ManagerOptions may change the options of the manager that is made, for what this config has no field for. Optional.
	ManagerOptions func(options *ctrl.Options)
}

// AppInformerConfig is how kinds are watched.
type AppInformerConfig struct {
	// InformerOptions tell which objects to watch. Namespaces are without meaning for kinds that have none.
	InformerOptions operator.InformerOptions
	// InformerSupplier makes informers. Defaults to [operator.DefaultInformerSupplier].
	InformerSupplier operator.InformerSupplier
	// RetryPolicy tells when handlers are called again after an error. Defaults to [operator.DefaultRetryPolicy].
	RetryPolicy operator.RetryPolicy
	// RetryDequeuePolicy tells whether a change replaces a retry. Defaults to [operator.OpinionatedRetryDequeuePolicy].
	RetryDequeuePolicy operator.RetryDequeuePolicy
	// FinalizerSupplier names the finalizers of kinds. Defaults to `<group>/<app>-<plural>`, with `core` for the core
	// group.
	FinalizerSupplier operator.FinalizerSupplier
}

// LeaderElection is how one of several replicas is chosen. The lease is given back when the app has stopped, after the
// last call of a handler has ended.
type LeaderElection struct {
	// Disabled has every replica call handlers. Defaults to false. There is no election either where there is no
	// Namespace, which is logged.
	Disabled bool
	// Namespace is where the lease is. Defaults to the namespace of the pod that the app runs in; elsewhere there is none.
	Namespace string
	// ID is the name of the lease. Defaults to the name of the app.
	ID string
	// LeaseDuration is how long others wait for a leader that is not heard of. Defaults to 15 seconds.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew the lease before it stops. Defaults to 10 seconds.
	RenewDeadline time.Duration
	// RetryPeriod is the time between tries to get or renew the lease. Defaults to 2 seconds.
	RetryPeriod time.Duration
}
