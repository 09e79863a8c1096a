// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/lease"
)

// ErrLapsed is the error of a write by a replica whose Lease has expired: another replica may have its objects. Either
// the Lease is renewed soon, or the manager ends.
var ErrLapsed = errors.New("the Lease of this shard has expired")

// defaultRenewDeadline is the default of controller-runtime.
const defaultRenewDeadline = 10 * time.Second

// newLock returns the lock that holds the Lease of the shard. The config for leader election is optional.
func (s *Shard) newLock(
	ofElection, ofManager *rest.Config, renewDeadline *time.Duration, log logr.Logger,
) (resourcelock.Interface, error) {
	config := rest.CopyConfig(cmp.Or(ofElection, ofManager))
	rest.AddUserAgent(config, "shard-lease")
	// As controller-runtime does: one request that hangs must not use up the deadline.
	config.Timeout = defaultRenewDeadline / 2
	if renewDeadline != nil {
		config.Timeout = *renewDeadline / 2
	}
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if log.GetSink() == nil {
		log = ctrl.Log // as the manager
	}
	return s.hold(&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: s.options.Namespace, Name: s.Name()},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: s.Name()},
		Labels:     map[string]string{RingLabel: s.options.Ring},
	}, log), nil
}

// hold returns a lock that notes until when the replica holds it.
func (s *Shard) hold(lock resourcelock.Interface, log logr.Logger) resourcelock.Interface {
	lock, noted := lease.Wrap(lock, log)
	s.lease.Store(noted)
	return lock
}

// Lapsed reports whether the Lease of the shard has expired or was released, which is logged once. It is false before
// the replica holds its Lease for the first time.
func (s *Shard) Lapsed() bool { return s.lease.Load().Check(time.Now()) != nil }

// fenced returns a function that makes the client of the manager with another one, so that it does not write after the
// Lease has expired.
func (s *Shard) fenced(newClient client.NewClientFunc) client.NewClientFunc {
	if newClient == nil {
		newClient = client.New
	}
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		config = rest.CopyConfig(config)
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &fence{rt, s} })
		httpClient, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("client of shard %q: %w", s.Name(), err)
		}
		options.HTTPClient = httpClient
		return newClient(config, options)
	}
}

// fence refuses to send writes after the Lease of the shard has expired.
type fence struct {
	http.RoundTripper
	shard *Shard
}

// RoundTrip sends a request.
func (f *fence) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead || !f.shard.Lapsed() {
		return f.RoundTripper.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, fmt.Errorf("shard %q: %w", f.shard.Name(), ErrLapsed)
}

// WrappedRoundTripper returns what sends the requests.
func (f *fence) WrappedRoundTripper() http.RoundTripper { return f.RoundTripper }
