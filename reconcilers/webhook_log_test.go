// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"trueup.dev/reconcilers"
)

func TestAdmissionWebhookAdapter_Log(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		err    error
		change func(*plain)
		want   []string
	}{
		"nothing": {object: plainObject},
		"mutate":  {object: plainObject, change: hello, want: []string{"mutating resource"}},
		"error": {
			object: plainObject, change: hello, err: errTest, want: []string{"unable to sync", "reconcile error"},
		},
		"quiet error":   {object: plainObject, change: hello, err: errQuiet},
		"durable error": {object: plainObject, err: errors.Join(errTest, reconcilers.ErrDurable)},
		"no object":     {object: " ", want: []string{"reconcile error"}},
		"marshal fails after": {
			object: plainObject, change: func(r *plain) { r.Spec.ErrOnMarshal = true }, want: []string{"reconcile error"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, lines := newLog(0)
			r := &plainAdapter{Reconciler: &plainSync{Sync: func(_ context.Context, resource *plain) error {
				if tc.change != nil {
					tc.change(resource)
				}
				return tc.err
			}}}
			r.Handle(withLog(context.Background(), log), admissionRequest(admissionv1.Create, tc.object))
			equal(t, "log", tc.want, lines.messages())
			if tc.err == errTest { //nolint:errorlint // the others are not logged
				contains(t, lines.all(), `"step"="ResourceNoStatusAdmissionWebhookAdapter.SyncReconciler"`)
			}
		})
	}
}

func TestAdmissionWebhookAdapter_DoesNotLogValues(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"test"},"data":{"password":"b2xkLXNlY3JldA=="}}`
	for _, verbosity := range []int{0, 1, 5} {
		log, lines := newLog(verbosity)
		r := &reconcilers.AdmissionWebhookAdapter[*corev1.Secret]{Reconciler: &reconcilers.SyncReconciler[*corev1.Secret]{
			Sync: func(_ context.Context, secret *corev1.Secret) error {
				secret.Data["password"] = []byte("new-secret")
				secret.StringData = map[string]string{"more": "more-secret"}
				return nil
			},
		}}
		got := r.Handle(withLog(context.Background(), log), admissionRequest(admissionv1.Create, object))
		equal(t, "patches", 2, len(got.Patches))
		contains(t, lines.all(), `"paths"=[`)
		contains(t, lines.all(), `"add /stringData"`)
		contains(t, lines.all(), `"replace /data/password"`)
		for _, value := range []string{"old-secret", "new-secret", "more-secret"} {
			for _, spelling := range spellings(value) {
				lacks(t, lines.all(), spelling)
			}
		}
	}
}

func TestAdmissionWebhookAdapter_LogsTheStepOfAPanic(t *testing.T) {
	log, lines := newLog(0)
	defer func() {
		equal(t, "panic", any("on purpose"), recover())
		contains(
			t, lines.all(), `"msg"="reconciler panicked" "step"="ResourceNoStatusAdmissionWebhookAdapter.0.SyncReconciler"`,
		)
	}()
	r := &plainAdapter{Reconciler: reconcilers.Sequence[*plain]{
		&plainSync{Sync: func(context.Context, *plain) error { panic("on purpose") }},
	}}
	r.Handle(withLog(context.Background(), log), admissionRequest(admissionv1.Create, plainObject))
}
