// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/sim"
	"trueup.dev/converge/internal/world"
)

// Env is the environment that a process provides to a reconciler. After a crash there is a new one.
type Env struct {
	// Client is the client of the manager: it reads from caches and writes to the API server.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Cache is where Client reads from.
	Cache cache.Cache
	// Scheme is the Scheme of the scenario.
	Scheme *runtime.Scheme
	// Recorder drops all events. For [States], a warning about an object says that its spec is refused.
	Recorder record.EventRecorder
	// Manager is the manager of the process, with which Setup is called. Clients of its GetConfig, for example clientsets
	// and dynamic clients of client-go, send their requests to the API server of the scenario, with faults. Their watches
	// and informers receive events at once, without faults.
	Manager manager.Manager
	// Cloud is a system outside of the cluster.
	Cloud Cloud

	process *sim.Process
}

// Call makes a call to a system outside of the cluster that effect stands for. Faults are injected there: the process
// crashes before or after the effect, or the call fails with or without an effect. The name should describe the call,
// for example "create bucket a".
//
// With [Scenario.Outside], a call that changes the content of the external systems is a write for [OracleIdempotence].
// Without it, the result of a call is unknown. Only calls of a [Cloud] are writes for the check of finalizers of
// [OracleDeletion]. The effect must not wait for anything. A panic of effect is one of the reconciler.
func (e Env) Call(ctx context.Context, name string, effect func() error) error {
	return e.process.CallOutside(ctx, name, effect)
}

// newEnv returns the environment that a process provides.
func newEnv(p *sim.Process) Env {
	return Env{
		Client: p.Client, APIReader: p.APIReader, Cache: p.Cache, Scheme: p.Manager.GetScheme(), Recorder: p.Recorder,
		Manager: p.Manager, Cloud: Cloud{process: p}, process: p,
	}
}

// EnvOf returns the environment of a manager that Setup was called with, or of one that wraps it and has a method
// Unwrap. It returns the zero Env for other managers.
func EnvOf(mgr manager.Manager) Env {
	for inner := mgr; ; {
		if p := sim.ProcessOf(inner); p != nil {
			env := newEnv(p)
			env.Client, env.Manager = mgr.GetClient(), mgr
			return env
		}
		m, ok := inner.(interface{ Unwrap() manager.Manager })
		if !ok {
			return Env{}
		}
		inner = m.Unwrap()
	}
}

// ErrExists and ErrAbsent are returned by the calls of a [Cloud].
var (
	ErrExists = errors.New("exists already")
	ErrAbsent = errors.New("does not exist")
)

// Cloud is a system outside of the cluster, for example one that has buckets. It stores values by keys. Each call can
// fail, with or without an effect, as calls of [Env.Call] do.
//
// Many real systems are eventually consistent, create things asynchronously, and return the first response again to a
// request with the same token. For these, see [Cloud.VisibleAfter], [Cloud.ReadyAfter] and [Cloud.CreateOnce].
type Cloud struct {
	process *sim.Process
	visible time.Duration
	ready   time.Duration
}

// VisibleAfter returns the same system with reads that are eventually consistent: Get and List do not show a value
// before the given time has passed since its creation.
func (c Cloud) VisibleAfter(d time.Duration) Cloud {
	c.visible = d
	return c
}

// ReadyAfter returns the same system with creations that take time: [Cloud.Ready] returns false before the given time
// has passed since a creation.
func (c Cloud) ReadyAfter(d time.Duration) Cloud {
	c.ready = d
	return c
}

// shows reports whether a read shows a value.
func (c Cloud) shows(s *world.Cloud, key string) bool {
	_, ok := s.Values[key]
	return ok && time.Since(s.Created[key]) >= c.visible
}

// Create creates a value. It returns [ErrExists] if the key exists.
func (c Cloud) Create(ctx context.Context, key, value string) error {
	return c.call(ctx, "create", key, func(s *world.Cloud) error {
		if _, ok := s.Values[key]; ok {
			return fmt.Errorf("%s: %w", key, ErrExists)
		}
		s.Set(key, value)
		return nil
	})
}

// CreateNamed creates a value and returns its key, which the system generates from a prefix. Two calls create two
// values.
func (c Cloud) CreateNamed(ctx context.Context, prefix, value string) (key string, err error) {
	return c.CreateOnce(ctx, "", prefix, value)
}

// CreateOnce is like CreateNamed, but idempotent for a token: a call with the token of an earlier call creates nothing
// and returns the key of the earlier value, even if that was deleted since. An empty token is none.
func (c Cloud) CreateOnce(ctx context.Context, token, prefix, value string) (key string, err error) {
	err = c.call(ctx, "create", prefix, func(s *world.Cloud) error {
		var used bool
		if key, used = s.Tokens[token]; used {
			return nil
		}
		if s.Named == nil {
			s.Named = map[string]int{}
		}
		s.Named[prefix]++
		key = fmt.Sprintf("%s%d", prefix, s.Named[prefix])
		c.process.LearnName(key, prefix)
		s.Set(key, value)
		if token != "" {
			if s.Tokens == nil {
				s.Tokens = map[string]string{}
			}
			s.Tokens[token] = key
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return key, nil
}

// Get returns a value. It returns [ErrAbsent] if the key does not exist.
func (c Cloud) Get(ctx context.Context, key string) (value string, err error) {
	err = c.read(ctx, "get", key, func(s *world.Cloud) error {
		if !c.shows(s, key) {
			return fmt.Errorf("%s: %w", key, ErrAbsent)
		}
		value = s.Values[key]
		return nil
	})
	return value, err
}

// Ready reports whether the creation of a value is complete. It returns [ErrAbsent] as Get does. See
// [Cloud.ReadyAfter].
func (c Cloud) Ready(ctx context.Context, key string) (ready bool, err error) {
	err = c.read(ctx, "ready", key, func(s *world.Cloud) error {
		if !c.shows(s, key) {
			return fmt.Errorf("%s: %w", key, ErrAbsent)
		}
		ready = time.Since(s.Created[key]) >= c.ready
		return nil
	})
	return ready, err
}

// List returns the keys with a prefix, sorted.
func (c Cloud) List(ctx context.Context, prefix string) (keys []string, err error) {
	err = c.read(ctx, "list", prefix, func(s *world.Cloud) error {
		for _, key := range phrase.SortedKeys(s.Values) {
			if strings.HasPrefix(key, prefix) && c.shows(s, key) {
				keys = append(keys, key)
			}
		}
		return nil
	})
	return keys, err
}

// Put creates or replaces a value.
func (c Cloud) Put(ctx context.Context, key, value string) error {
	return c.call(ctx, "put", key, func(s *world.Cloud) error {
		s.Set(key, value)
		return nil
	})
}

// Delete deletes a value. It returns [ErrAbsent] if the key does not exist.
func (c Cloud) Delete(ctx context.Context, key string) error {
	return c.call(ctx, "delete", key, func(s *world.Cloud) error {
		if _, ok := s.Values[key]; !ok {
			return fmt.Errorf("%s: %w", key, ErrAbsent)
		}
		delete(s.Values, key)
		s.Version++
		return nil
	})
}

func (c Cloud) read(ctx context.Context, verb, key string, do func(*world.Cloud) error) error {
	return c.process.CallCloud(ctx, verb, key, false, do)
}

func (c Cloud) call(ctx context.Context, verb, key string, do func(*world.Cloud) error) error {
	return c.process.CallCloud(ctx, verb, key, true, do)
}

// State is the stored state of the API server and of the [Cloud] at one moment.
type State struct {
	world *world.World
	// failures are the errors of reads that cannot return one.
	failures *[]error
}

// Get reads an object by its namespace and name, and reports whether it exists. If the object cannot be read for
// another reason, for example because its type is not in the Scheme, Get returns false and the check of the state fails
// with that error.
func (s State) Get(obj client.Object) bool {
	err := s.world.User.Get(context.Background(), client.ObjectKeyFromObject(obj), obj)
	if client.IgnoreNotFound(err) != nil {
		*s.failures = append(*s.failures, fmt.Errorf("State.Get of %T %s: %w", obj, client.ObjectKeyFromObject(obj), err))
	}
	return err == nil
}

// List fills a list, in the order of namespaces and names.
func (s State) List(list client.ObjectList, opts ...client.ListOption) error {
	return s.world.User.List(context.Background(), list, opts...)
}

// Cloud returns the values of the external system, by key.
func (s State) Cloud() map[string]string { return maps.Clone(s.world.Cloud.Values) }

// desired returns the error of Scenario.Desired, or why it could not read the state.
func desired(check func(State) error, w *world.World) error {
	var failures []error
	err := check(State{world: w, failures: &failures})
	if len(failures) > 0 {
		return errors.Join(failures...)
	}
	return err
}
