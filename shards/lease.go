// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrLapsed is the error of a write by a replica whose Lease has expired: another replica may have its objects. Either
// the Lease is renewed soon, or the manager ends.
var ErrLapsed = errors.New("the Lease of this shard has expired")

// defaultRenewDeadline is the default of controller-runtime.
const defaultRenewDeadline = 10 * time.Second

// newLock returns the lock that holds the Lease of the shard. The config for leader election is optional.
func (s *Shard) newLock(
	ofElection, ofManager *rest.Config, renewDeadline *time.Duration,
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
	return &lock{shard: s, LeaseLock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: s.options.Namespace, Name: s.Name()},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: s.Name()},
		Labels:     map[string]string{RingLabel: s.options.Ring},
	}}, nil
}

// lock is the Lease of a shard. It notes until when the replica holds it.
type lock struct {
	*resourcelock.LeaseLock
	shard *Shard
}

var _ resourcelock.Interface = (*lock)(nil)

// Create creates the Lease.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	before := time.Now()
	err := l.LeaseLock.Create(ctx, record)
	l.note(before, record, err)
	return err
}

// Update renews or releases the Lease.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	before := time.Now()
	err := l.LeaseLock.Update(ctx, record)
	l.note(before, record, err)
	return err
}

// note notes the result of a request that began at a time. After an error it is unknown whether the Lease was renewed.
func (l *lock) note(before time.Time, record resourcelock.LeaderElectionRecord, err error) {
	if err != nil {
		return
	}
	until := before
	if record.HolderIdentity == l.shard.Name() {
		until = before.Add(time.Duration(record.LeaseDurationSeconds) * time.Second)
	}
	l.shard.heldUntil.Store(&until)
	l.shard.lapseLogged.Store(false)
}

// Lapsed reports whether the Lease of the shard has expired or was released. It is false before the replica holds its
// Lease for the first time.
func (s *Shard) Lapsed() bool {
	until := s.heldUntil.Load()
	return until != nil && !time.Now().Before(*until)
}

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
