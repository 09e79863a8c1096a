// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/internal/offline"
)

// server is the lock as an API server stores it. A write takes some time.
type server struct {
	resourcelock.Interface
	takes time.Duration
	err   error
}

func (*server) Identity() string { return "me" }
func (*server) Describe() string { return "ops/web" }

func (s *server) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	time.Sleep(s.takes)
	return s.err
}

func (s *server) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return s.Create(ctx, record)
}

func TestCheck(t *testing.T) {
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15}
	endless := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	released := resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}
	failed := errors.New("no response")
	renew := func(record resourcelock.LeaderElectionRecord, takes time.Duration, err error) func(*lock) {
		return func(l *lock) {
			of := l.Interface.(*server)
			of.takes, of.err = takes, err
			if got := l.Update(t.Context(), record); !errors.Is(got, err) {
				t.Errorf("the write returned %v, want %v", got, err)
			}
		}
	}
	after := func(d time.Duration) func(*lock) { return func(*lock) { time.Sleep(d) } }
	const expired = "the lease ops/web was renewed 15s ago and has expired: another replica may be the leader"
	for name, tc := range map[string]struct {
		steps []func(*lock)
		want  string
	}{
		"before it is held": {steps: []func(*lock){after(time.Hour)}},
		"not acquired":      {steps: []func(*lock){renew(mine, 0, failed), after(time.Hour)}},
		"held":              {steps: []func(*lock){renew(mine, 0, nil), after(15*time.Second - 1)}},
		"created": {
			steps: []func(*lock){
				func(l *lock) {
					if err := l.Create(t.Context(), mine); err != nil {
						t.Error(err)
					}
				}, after(15 * time.Second),
			},
			want: expired,
		},
		"expired": {steps: []func(*lock){renew(mine, 0, nil), after(15 * time.Second)}, want: expired},
		"expired, as candidates may have seen the renewal when it began": {
			steps: []func(*lock){renew(mine, 5*time.Second, nil), after(10 * time.Second)}, want: expired,
		},
		"renewed": {
			steps: []func(*lock){renew(mine, 0, nil), after(14 * time.Second), renew(mine, 0, nil), after(14 * time.Second)},
		},
		"renewed after it had expired": {
			steps: []func(*lock){renew(mine, 0, nil), after(time.Hour), renew(mine, 0, nil)},
		},
		"expired, as a later renewal failed": {
			steps: []func(*lock){
				renew(mine, 0, nil), after(10 * time.Second), renew(mine, 0, failed), after(5 * time.Second),
			},
			want: expired,
		},
		"without a duration": {steps: []func(*lock){renew(endless, 0, nil), after(time.Hour)}},
		"released": {
			steps: []func(*lock){renew(mine, 0, nil), renew(released, 0, nil)},
			want:  "the lease ops/web is released: another replica may be the leader",
		},
		"released, as far as is known": {
			steps: []func(*lock){renew(mine, 0, nil), renew(released, 0, failed)},
			want:  "the lease ops/web is released: another replica may be the leader",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logged := []string{}
				l := &lock{&server{}, &Lease{name: "ops/web", log: funcr.New(func(_, args string) {
					logged = append(logged, args)
				}, funcr.Options{})}}
				for _, step := range tc.steps {
					step(l)
				}
				got, logs := "", 0
				for range 2 { // what is refused is logged once
					if err := l.lease.Check(time.Now()); err != nil {
						got, logs = err.Error(), 1
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				if len(logged) != logs || logs > 0 && !strings.Contains(logged[0], tc.want) {
					t.Errorf("logged %q, want one line with the error", logged)
				}
			})
		})
	}
}

// The monotonic clock of a suspended machine stops: a time without a monotonic reading stands for that.
func TestCheckAfterTheMachineWasSuspended(t *testing.T) {
	l := &Lease{name: "ops/web"}
	l.last.Store(&term{renewed: time.Now(), duration: 15 * time.Second})
	if err := l.Check(time.Now()); err != nil {
		t.Errorf("before: %v", err)
	}
	if l.Check(time.Now().Round(0).Add(time.Hour)) == nil {
		t.Error("the lease is still held an hour later")
	}
}

func TestOf(t *testing.T) {
	newManager := func(election bool) manager.Manager {
		mgr, err := ctrl.NewManager((&offline.Cluster{}).GetConfig(), ctrl.Options{
			Scheme: clientgoscheme.Scheme, LeaderElection: election, LeaderElectionID: "web", LeaderElectionNamespace: "ops",
			MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
				return offline.NewMapper(clientgoscheme.Scheme), nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return mgr
	}
	mgr := newManager(true)
	l := Of(mgr)
	if l == nil || l.name != "ops/web" {
		t.Fatalf("got the lease %+v", l)
	}
	if again := Of(mgr); again != l {
		t.Error("a second call returns another lease")
	}
	type wrapped struct{ manager.Manager }
	if of := Of(&wrapped{&wrapped{mgr}}); of != l {
		t.Error("a wrapped manager has another lease")
	}
	if of := Of(newManager(false)); of != nil {
		t.Errorf("a manager without leader election has the lease %q", of.name)
	}
	if of := Of(&offline.Manager{}); of != nil {
		t.Errorf("another kind of manager has the lease %q", of.name)
	}
	if err := (*Lease)(nil).Check(time.Now()); err != nil {
		t.Errorf("no lease: %v", err)
	}
}
