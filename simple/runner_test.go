// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/app"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

// ownApp is an app that does not use package simple.
type ownApp struct {
	ready   atomic.Bool
	counter prometheus.Counter
}

func (a *ownApp) ManagedKinds() []resource.Kind {
	return []resource.Kind{widgetKind, trophyKinds[0], trophyKinds[1]}
}

func (a *ownApp) Validate(_ context.Context, req *app.AdmissionRequest) error {
	if req.Kind != "Widget" {
		return fmt.Errorf("validation of %s: %w", req.Kind, app.ErrNotImplemented)
	}
	if req.Action != app.AdmissionActionDelete && req.Object.(*Widget).Spec.Size > 9 {
		return errors.New("more than 9")
	}
	return nil
}

func (a *ownApp) Mutate(_ context.Context, req *app.AdmissionRequest) (*app.MutatingResponse, error) {
	if req.Kind != "Widget" {
		return nil, app.ErrNotImplemented
	}
	widget := req.Object.(*Widget)
	widget.Spec.Title = strings.ToUpper(widget.Spec.Title)
	return &app.MutatingResponse{UpdatedObject: widget}, nil
}

func (a *ownApp) Convert(_ context.Context, req app.ConversionRequest) (*app.RawObject, error) {
	text := strings.Replace(
		string(req.Raw.Raw), req.SourceGVK.GroupVersion().String(), req.TargetGVK.GroupVersion().String(), 1,
	)
	return &app.RawObject{Raw: []byte(strings.Replace(text, `"silver"`, `"`+req.TargetGVK.Version+`-silver"`, 1))}, nil
}

func (a *ownApp) Runner() app.Runnable {
	return app.RunnableFunc(func(ctx context.Context) error {
		a.ready.Store(true)
		<-ctx.Done()
		return nil
	})
}

func (a *ownApp) HealthChecks() []app.HealthCheck { return []app.HealthCheck{ownCheck{a}} }

func (a *ownApp) PrometheusCollectors() []prometheus.Collector {
	return []prometheus.Collector{a.counter}
}

type ownCheck struct{ app *ownApp }

func (ownCheck) HealthCheckName() string { return "own" }

func (c ownCheck) HealthCheck(context.Context) error {
	if !c.app.ready.Load() {
		return errors.New("the app does not run yet")
	}
	return nil
}

// trophyKinds are the two versions of a kind, for the test of the runner.
var trophyKinds = [2]resource.Kind{
	{
		Schema: resource.NewSimpleSchema(
			group, "v1", &MedalV1{}, &MedalV1List{}, resource.WithKind("Trophy"), resource.WithPlural("trophies"),
		),
	},
	{
		Schema: resource.NewSimpleSchema(
			group, "v2", &Medal{}, &MedalList{}, resource.WithKind("Trophy"), resource.WithPlural("trophies"),
		),
	},
}

type (
	MedalV1Spec struct {
		Metal string `json:"metal"`
	}
	MedalV1     = resource.TypedSpecObject[MedalV1Spec]
	MedalV1List = resource.TypedList[MedalV1]
)

// The runner serves any app: the API server calls an app that is not made by package simple over TLS, at the path of
// its kind and at the path of all kinds.
func TestRunner_AnyAppServesTheAPI(t *testing.T) {
	trophies := crd("Trophy", "trophies", "v1", "v2")
	e := newEnv(t, trophies)
	options, authority := e.WebhookOptions()
	metrics, health := e.FreePort(), e.FreePort()
	made := &ownApp{
		counter: prometheus.NewCounter(prometheus.CounterOpts{Name: "own_app_total", Help: "A metric of the app."}),
	}
	runner, err := operator.NewRunner(operator.RunnerConfig{
		KubeConfig: *e.RESTConfig(),
		WebhookConfig: operator.RunnerWebhookConfig{
			Host: options.Host, Port: options.Port, TLSConfig: operator.RunnerTLSConfig{
				CertPath: filepath.Join(options.CertDir, "tls.crt"), KeyPath: filepath.Join(options.CertDir, "tls.key"),
			},
		},
		MetricsConfig: operator.RunnerMetricsConfig{
			Enabled: true, ProfilingEnabled: true, Host: "127.0.0.1",
			MetricsServerConfig: operator.MetricsServerConfig{Port: metrics},
		},
		HealthConfig: operator.RunnerHealthConfig{Enabled: true, Host: "127.0.0.1", Port: health},
	})
	e.Must(err)
	provider := simple.NewAppProvider(app.ManifestData{AppName: "own"}, nil, func(app.Config) (app.App, error) {
		return made, nil
	})
	e.Go("the runner", func(ctx context.Context) error { return runner.Run(ctx, provider) })
	e.Eventually(func() error {
		body, err := get("http://" + address(health) + "/readyz?verbose")
		if err == nil && (!strings.Contains(body, "[+]own ok") || !strings.Contains(body, "[+]webhooks ok")) {
			err = fmt.Errorf("readyz is %s", body)
		}
		return err
	})
	if _, err := get("http://" + address(health) + "/livez"); err != nil {
		t.Error(err)
	}
	if body, err := get("http://" + address(metrics) + "/metrics"); err != nil ||
		!strings.Contains(body, "own_app_total") {
		t.Errorf("metrics without those of the app, error %v", err)
	}
	if body, err := get("http://" + address(metrics) + "/debug/pprof/"); err != nil || !strings.Contains(body, "heap") {
		t.Errorf("no profiles, error %v", err)
	}

	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{
			URL: new("https://" + address(options.Port) + path), CABundle: authority,
		}
	}
	e.admitWidgets(at("/mutate"), at("/validate/widgets."+group))
	e.Eventually(func() error { // until the API server has loaded both configurations
		probe := newWidget("probe", "probe")
		probe.Namespace, probe.Spec.Size = e.Namespace, 10
		if err := e.Create(e.Context(), probe, client.DryRunAll); !apierrs.IsForbidden(err) ||
			!strings.Contains(err.Error(), "more than 9") {
			return fmt.Errorf("the app does not validate yet: %w", err)
		}
		probe.Spec.Size = 1
		if err := e.Create(e.Context(), probe, client.DryRunAll); err != nil || probe.Spec.Title != "PROBE" {
			return fmt.Errorf("the app does not mutate yet: title %q, error %w", probe.Spec.Title, err)
		}
		return nil
	})

	e.convert("trophies", (&simple.App{}).CustomResourceConversion(at("")))
	e.Cleanup(func() {
		e.convert("trophies", &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter})
	})
	trophy := func(version string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/" + version, "kind": "Trophy", "metadata": map[string]any{
				"name": "it",
			}, "spec": map[string]any{"metal": "silver"},
		}}
	}
	e.Add(trophy("v1"))
	e.Eventually(func() error {
		got := trophy("v2")
		if err := e.Read(got); err != nil {
			return err
		}
		if metal := got.Object["spec"].(map[string]any)["metal"]; metal != "v2-silver" {
			return fmt.Errorf("v2 of what was created as v1 is %v", metal)
		}
		return nil
	})
}

// louderApp embeds an app of package simple, and overrides Mutate.
type louderApp struct{ *simple.App }

func (a louderApp) Mutate(ctx context.Context, req *app.AdmissionRequest) (*app.MutatingResponse, error) {
	response, err := a.App.Mutate(ctx, req)
	if err == nil {
		response.UpdatedObject.(*Widget).Spec.Title += "!"
	}
	return response, err
}

// The methods of an app that embeds an app of package simple are called, whether the app or the Runner serves the
// webhooks.
func TestRunner_AppThatEmbedsAnother(t *testing.T) {
	for name, byRunner := range map[string]bool{"the app serves": false, "the runner serves": true} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			mutator, _ := (&admissions{}).handlers()
			config := e.config("embedded")
			config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Mutator: mutator}}
			at := e.serveWebhooks(&config)
			runnerConfig := operator.RunnerConfig{KubeConfig: *e.RESTConfig()}
			if byRunner {
				runnerConfig.WebhookConfig = operator.RunnerWebhookConfig{
					Host: "127.0.0.1", Port: config.Webhooks.Port, TLSConfig: operator.RunnerTLSConfig{
						CertPath: filepath.Join(config.Webhooks.CertDir, "tls.crt"),
						KeyPath:  filepath.Join(config.Webhooks.CertDir, "tls.key"),
					},
				}
				config.Webhooks.CertDir = "/nowhere" // starting a server there would fail
			}
			made := e.make(config)
			runner, err := operator.NewRunner(runnerConfig)
			e.Must(err)
			provider := simple.NewAppProvider(app.ManifestData{AppName: "embedded"}, nil, func(app.Config) (app.App, error) {
				return louderApp{made}, nil
			})
			e.Go("the runner", func(ctx context.Context) error { return runner.Run(ctx, provider) })
			e.Eventually(func() error {
				conn, err := net.Dial("tcp", address(config.Webhooks.Port))
				if err == nil {
					err = conn.Close()
				}
				return err
			})
			e.register(made, at)
			e.Eventually(func() error {
				probe := newWidget("probe", "probe")
				probe.Namespace = e.Namespace
				if err := e.Create(e.Context(), probe, client.DryRunAll); err != nil || probe.Spec.Title != "PROBE!" {
					return fmt.Errorf("title %q, error %w", probe.Spec.Title, err)
				}
				return nil
			})
		})
	}
}

// admitWidgets configures the API server to call webhooks for widgets in the namespace of the test, until the end of
// the test.
func (e *env) admitWidgets(mutate, validate admissionregistrationv1.WebhookClientConfig) {
	e.Helper()
	here := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": e.Namespace}}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{"widgets"},
		},
	}}
	none := new(admissionregistrationv1.SideEffectClassNone)
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutate.own.example.com", ClientConfig: mutate, Rules: rules, NamespaceSelector: here, SideEffects: none,
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.own.example.com", ClientConfig: validate, Rules: rules, NamespaceSelector: here, SideEffects: none,
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	for _, configuration := range []client.Object{mutating, validating} {
		configuration.SetName("own." + e.Namespace)
		e.Must(e.Create(e.Context(), configuration))
		e.Cleanup(func() { e.Must(e.Delete(context.Background(), configuration)) })
	}
}
