// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/app"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

// One of two replicas calls handlers. When it stops, the other replica takes over. It would wait for an hour if the
// lease were not released.
func TestWeaknessD1_OneReplicaCallsHandlers(t *testing.T) {
	e := newEnv(t)
	var first, second record
	replica := func(calls *record) simple.AppConfig {
		config := e.config("elected")
		config.LeaderElection = simple.LeaderElection{
			Namespace: e.Namespace, LeaseDuration: time.Hour, RetryPeriod: 50 * time.Millisecond,
		}
		config.ManagedKinds = []simple.AppManagedKind{
			{Kind: widgetKind, Reconciler: calls.reconciler(), ReconcileOptions: simple.ReconcileOptions{UsePlain: true}},
		}
		return config
	}
	leader := e.make(replica(&first))
	stop := e.run(leader)
	<-leader.Manager().Elected()
	standby, health := replica(&second), e.FreePort()
	standby.HealthBindAddress = address(health)
	other := e.make(standby)
	e.run(other)
	e.Eventually(func() error { // it has all objects, and waits for the lease
		_, err := get("http://" + address(health) + "/readyz")
		return err
	})
	e.Add(newWidget("one", ""))
	e.Eventually(func() error { return first.has("created one") })
	select {
	case <-other.Manager().Elected():
		t.Error("there are two leaders")
	default:
	}
	stop()
	e.Add(newWidget("two", ""))
	e.Eventually(func() error { return second.has("created one", "created two") })
	if err := first.has("created two"); err == nil {
		t.Error("the first replica was called after it was stopped")
	}
}

// get returns the body that a URL serves.
func get(url string) (string, error) {
	answer, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return string(body), err
}

// A handler that is running when the app stops is waited for.
func TestGracefulStop(t *testing.T) {
	e := newEnv(t)
	entered := make(chan struct{})
	var finished atomic.Bool
	config := e.config("graceful")
	config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Watcher: &simple.Watcher{
		AddFunc: func(ctx context.Context, object resource.Object) error {
			close(entered)
			<-ctx.Done() // the app is stopping
			for i := range 20 {
				e.Must(e.Create(context.WithoutCancel(ctx), &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: fmt.Sprintf("last-%d", i)},
				}))
			}
			finished.Store(true)
			return nil
		},
	}}}
	stop := e.start(config)
	e.Add(newWidget("it", ""))
	<-entered
	stop()
	if !finished.Load() {
		t.Error("the app did not wait for its handler")
	}
}

// A panic of a handler is a failure, and is retried.
func TestWeaknessD2_PanicsAreRecovered(t *testing.T) {
	e := newEnv(t)
	var calls record
	config := e.config("panicking")
	config.InformerConfig.RetryPolicy = operator.BackoffPolicy{Initial: time.Millisecond}.Policy()
	config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Watcher: &simple.Watcher{
		AddFunc: func(_ context.Context, object resource.Object) error {
			calls.add("add %s", object.GetName())
			if len(calls.all()) == 1 {
				panic("the first time")
			}
			calls.add("added")
			return nil
		},
	}}}
	e.start(config)
	e.Add(newWidget("it", ""))
	e.Eventually(func() error { return calls.has("added") })
}

func TestWeaknessD3_MetricsAndHealthOfEveryKind(t *testing.T) {
	e := newEnv(t)
	metrics, health := e.FreePort(), e.FreePort()
	config := e.config("observed")
	config.MetricsBindAddress, config.HealthBindAddress = address(metrics), address(health)
	var calls record
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: widgetKind, Reconciler: calls.reconciler(), Validator: &simple.Validator{}},
	}
	e.serveWebhooks(&config)
	e.start(config)
	e.Add(newWidget("it", ""))
	e.Eventually(func() error { return calls.has("created it") })
	for url, want := range map[string][]string{
		"http://" + address(health) + "/healthz?verbose": {"[+]healthz ok"},
		"http://" + address(health) + "/readyz?verbose":  {"[+]informer-widgets." + group + " ok", "[+]webhooks ok"},
		"http://" + address(metrics) + "/metrics": {
			`trueup_handler_calls_total{action="Created",handler="widgets.` + group + `",result="done"}`,
			`controller_runtime_reconcile_total{controller="widgets.` + group + `",result="success"}`,
		},
	} {
		e.Eventually(func() error {
			body, err := get(url)
			for _, part := range want {
				if err == nil && !strings.Contains(body, part) {
					err = fmt.Errorf("%s does not have %s:\n%s", url, part, body)
				}
			}
			return err
		})
	}
}

func TestAddRunnable(t *testing.T) {
	e := newEnv(t)
	config := e.config("more")
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: widgetKind, Watcher: &simple.Watcher{}, ReconcileOptions: simple.ReconcileOptions{UsePlain: true}},
	}
	hooked := false
	config.ManagerOptions = func(options *ctrl.Options) { hooked = options.Scheme != nil }
	made := e.make(config)
	if !hooked {
		t.Error("ManagerOptions was not called with the options")
	}
	e.Must(made.AddRunnable(app.RunnableFunc(func(context.Context) error { return errOnPurpose })))
	if err := made.Runner().Run(t.Context()); !errors.Is(err, errOnPurpose) {
		t.Errorf("the app ended with %v, want the error of the runnable", err)
	}
}
