// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/internal/engine/lease"
	"trueup.dev/internal/objects/nilcheck"
)

const (
	// RingLabel is the label of a Lease whose value is the name of the ring.
	RingLabel = "alpha.sharding.timebertt.dev/controllerring"
	// StateLabel is the label of a Lease by which the sharder says in which state it considers the shard.
	StateLabel = "alpha.sharding.timebertt.dev/state"

	shardPrefix = "shard.alpha.sharding.timebertt.dev/"
	drainPrefix = "drain.alpha.sharding.timebertt.dev/"
	// maxName limits the names of rings and shards. A ring is the end of the key of a label, and a shard is its value.
	// Other than that, both are names of objects, whose characters labels allow.
	maxName = 63
)

// ShardLabel returns the key of the label of objects whose value is the name of the shard.
func ShardLabel(ring string) string { return shardPrefix + ring }

// DrainLabel returns the key of the label by which the sharder asks a shard to release an object.
func DrainLabel(ring string) string { return drainPrefix + ring }

// Options describe a replica.
type Options struct {
	// Ring is the name of the ControllerRing: all replicas of a controller have the same. At most 63 characters. Required.
	Ring string
	// Shard is the name of this replica. All replicas have different names. Defaults to the host name, which is the name
	// of the pod.
	Shard string
	// Namespace is the namespace of the Leases. Defaults to the namespace of the pod; outside of a pod it is required.
	Namespace string
	// Kinds are the kinds whose objects are divided: the kinds that the controllers reconcile and the kinds of their
	// children, as in the resources of the ControllerRing. The caches have all objects of other kinds. Required.
	Kinds []client.Object
}

// namespaceFile contains the namespace of the pod that the process runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// withDefaults returns the options with the defaults of what is not set.
func (o Options) withDefaults() (Options, error) {
	var err error
	if o.Shard == "" {
		o.Shard, err = os.Hostname()
	}
	if o.Namespace == "" {
		if inPod, err := os.ReadFile(namespaceFile); err == nil {
			o.Namespace = strings.TrimSpace(string(inPod))
		}
	}
	o.Kinds = slices.Clone(o.Kinds)
	return o, err
}

func (o Options) validate() error {
	var problems []error
	add := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("Options."+field+" "+format, args...))
	}
	names := func(field, value string, check func(string) []string) {
		for _, problem := range check(value) {
			add(field, "must be valid, got %q: %s", value, problem)
		}
	}
	for _, name := range []struct{ field, value string }{{"Ring", o.Ring}, {"Shard", o.Shard}} {
		switch {
		case name.value == "":
			add(name.field, "is required")
		case len(name.value) > maxName:
			add(name.field, "must have at most %d characters, got %d", maxName, len(name.value))
		default:
			names(name.field, name.value, validation.IsDNS1123Subdomain)
		}
	}
	if o.Namespace == "" {
		add("Namespace", "is required outside of a pod")
	} else {
		names("Namespace", o.Namespace, validation.IsDNS1123Label)
	}
	if len(o.Kinds) == 0 {
		add("Kinds", "is required")
	}
	for i, kind := range o.Kinds {
		if nilcheck.IsNil(kind) {
			add("Kinds", "must not have a nil object at index %d", i)
		}
	}
	return errors.Join(problems...)
}

// Shard is one of several replicas of a controller. It is safe for concurrent use. See the package comment.
type Shard struct {
	options Options
	// divided has, for each kind that was asked for, whether it is one of Kinds.
	divided sync.Map
	// lease is the Lease. It is nil before [Shard.ManagerOptions].
	lease atomic.Pointer[lease.Lease]
}

// New returns the shard that the options describe. It makes no request. The error lists all problems of the options.
func New(options Options) (*Shard, error) {
	options, err := options.withDefaults()
	if err = errors.Join(err, options.validate()); err != nil {
		return nil, fmt.Errorf("invalid options of a shard:\n%w", err)
	}
	return &Shard{options: options}, nil
}

// Ring returns the name of the ring.
func (s *Shard) Ring() string { return s.options.Ring }

// Name returns the name of the shard, which is also the name of its Lease.
func (s *Shard) Name() string { return s.options.Shard }

// Label returns the key of the label whose value is the name of the shard, see [ShardLabel].
func (s *Shard) Label() string { return ShardLabel(s.options.Ring) }

// Selector selects the objects of this shard.
func (s *Shard) Selector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{s.Label(): s.Name()})
}

// Divides reports whether the objects of a kind are divided among the shards: whether it is one of the Kinds of the
// options. The scheme has their Go types.
func (s *Shard) Divides(kind schema.GroupKind, scheme *runtime.Scheme) bool {
	if known, ok := s.divided.Load(kind); ok {
		return known.(bool)
	}
	divided := slices.ContainsFunc(s.options.Kinds, func(obj client.Object) bool {
		gvk, err := apiutil.GVKForObject(obj, scheme)
		return err == nil && gvk.GroupKind() == kind
	})
	s.divided.Store(kind, divided)
	return divided
}

// has reports whether an object is assigned to this shard.
func (s *Shard) has(obj client.Object) bool { return obj.GetLabels()[s.Label()] == s.Name() }

// drains reports whether the sharder asks the shard of an object to release it.
func (s *Shard) drains(obj client.Object) bool {
	_, drain := obj.GetLabels()[DrainLabel(s.options.Ring)]
	return drain
}
