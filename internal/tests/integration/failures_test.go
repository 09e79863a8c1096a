// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

var errNoPassword = errors.New("no password")

// undecided is a child whose author returns an error instead of the desired state.
func undecided() reconcilers.SubReconciler[*fixture.Resource] {
	return reconcilers.Sequence[*fixture.Resource]{
		&reconcilers.SyncReconciler[*fixture.Resource]{Sync: func(context.Context, *fixture.Resource) error { return nil }},
		&reconcilers.ChildReconciler[*fixture.Resource, *corev1.Secret, *corev1.SecretList]{
			DesiredChild: func(context.Context, *fixture.Resource) (*corev1.Secret, error) { return nil, errNoPassword },
			ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.Secret, error) {
			},
			MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.Data = desired.Data },
		},
	}
}

// backup is a finalizer that fails.
func backup() reconcilers.SubReconciler[*fixture.Resource] {
	return &reconcilers.WithFinalizer[*fixture.Resource]{
		Finalizer: "example.com/backup",
		Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
			Name:     "Backup",
			Sync:     func(context.Context, *fixture.Resource) error { return nil },
			Finalize: func(context.Context, *fixture.Resource) error { return errors.New("the bucket is full") },
		},
	}
}

// logLines collects what a manager logs.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, prefix+" "+args)
}

// with waits for a line that contains all parts, and returns it.
func (l *logLines) with(e *env, parts ...string) (found string) {
	e.Helper()
	e.Eventually(func() (err error) {
		found, err = l.find(parts...)
		return err
	})
	return found
}

func (l *logLines) find(parts ...string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
lines:
	for _, line := range l.lines {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue lines
			}
		}
		return line, nil
	}
	return "", fmt.Errorf("no line contains %q:\n%s", parts, strings.Join(l.lines, "\n"))
}

// startLogging starts a manager, as start does, that logs to the returned lines.
func (e *env) startLogging(setups ...setup) *logLines {
	e.Helper()
	lines := &logLines{}
	e.startWith(ctrl.Options{Logger: funcr.New(lines.add, funcr.Options{})}, setups...)
	return lines
}

// eventAbout waits for an event for a resource, and returns its text.
func (e *env) eventAbout(resource client.Object, reason string) (text string) {
	e.Helper()
	e.Eventually(func() error {
		var list corev1.EventList
		if err := e.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.InvolvedObject.UID == resource.GetUID() && event.Reason == reason {
				text = event.Type + " " + event.Message
				return nil
			}
		}
		return fmt.Errorf("no event %s for %s", reason, resource.GetName())
	})
	return text
}

func TestErrorsNameStepAndChild(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reconciler reconcilers.SubReconciler[*fixture.Resource]
		deleted    bool
		want       string
	}{
		"DesiredChild": {
			reconciler: undecided(), want: "ResourceResourceReconciler.1.SecretChildReconciler: Secret: no password",
		},
		"finalizer": {
			reconciler: backup(), deleted: true, want: "ResourceResourceReconciler.WithFinalizer.Backup: the bucket is full",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			lines := e.startLogging(root(tc.reconciler))
			resource := newResource("it", nil)
			e.Add(resource)
			if tc.deleted {
				until(e, resource, func(r *fixture.Resource) error {
					if len(r.Finalizers) == 0 {
						return errors.New("no finalizer yet")
					}
					return nil
				})
				e.Must(e.Delete(e.Context(), resource))
			}
			t.Log(lines.with(e, `"msg"="Reconciler error"`, fmt.Sprintf(`"error"=%q`, tc.want), `"name"="it"`))
			if got := e.eventAbout(resource, "ReconcileFailed"); got != "Warning "+tc.want {
				t.Errorf("event: %s\nwant Warning %s", got, tc.want)
			}
		})
	}
}
