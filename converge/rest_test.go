// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// clientsetCopier is a copier that uses only a clientset.
type clientsetCopier struct {
	kubernetes.Interface

	// generated lets the API server generate the name of the ConfigMap, so that a lost response leads to a second one.
	generated bool
}

func (c *clientsetCopier) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret, err := c.CoreV1().Secrets(req.Namespace).Get(ctx, req.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	value, configMaps := string(secret.Data["value"]), c.CoreV1().ConfigMaps(req.Namespace)
	name := req.Name
	if c.generated {
		name = secret.Annotations["configmap"]
	}
	if found, err := configMaps.Get(ctx, name, metav1.GetOptions{}); name != "" && !apierrors.IsNotFound(err) {
		if err != nil || found.Data["value"] == value {
			return reconcile.Result{}, err
		}
		found.Data = map[string]string{"value": value}
		_, err = configMaps.Update(ctx, found, metav1.UpdateOptions{})
		return reconcile.Result{}, err
	}
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value},
	}
	configMap.Namespace = req.Namespace
	if c.generated {
		configMap.Name, configMap.GenerateName = "", req.Name+"-"
	}
	if err := controllerutil.SetControllerReference(secret, configMap, scheme.Scheme); err != nil {
		return reconcile.Result{}, err
	}
	created, err := configMaps.Create(ctx, configMap, metav1.CreateOptions{})
	if err != nil || !c.generated {
		return reconcile.Result{}, err
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "configmap", created.Name)
	_, err = c.CoreV1().Secrets(req.Namespace).Update(ctx, secret, metav1.UpdateOptions{})
	return reconcile.Result{}, err
}

func clientsetScenario(generated bool) Scenario {
	s := controllerScenario(false)
	s.Setup = func(mgr ctrl.Manager) error {
		clientset, err := kubernetes.NewForConfig(mgr.GetConfig())
		if err != nil {
			return err
		}
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Owns(&corev1.ConfigMap{}).Complete(&clientsetCopier{
			clientset, generated,
		})
	}
	return s
}

// TestClientsetPasses checks a reconciler that uses a clientset. Its requests are injection points.
func TestClientsetPasses(t *testing.T) {
	s := clientsetScenario(false)
	Run(t, s)
	p := mustPlan(t, s)
	o := p.execute(t, nil, p.usual(), nil)
	var sites []string
	for _, m := range o.Points {
		if site := m.String(); !strings.HasPrefix(site, "event ") {
			sites = append(sites, site)
		}
	}
	for _, want := range []string{
		"live get Secret default/a", "create ConfigMap default/a", "update ConfigMap default/a",
	} {
		if !slices.Contains(sites, want) {
			t.Errorf("no injection point %q in %q", want, sites)
		}
	}
}

// TestClientsetFails finds the bug of a reconciler that uses a clientset: a lost response leads to a second object.
func TestClientsetFails(t *testing.T) {
	if f := foundIn(t, clientsetScenario(true)); f == nil || f.Violation.Oracle != OracleDuplicates {
		t.Errorf("got %v, want a duplicate", f)
	}
}

// TestInformersOfClientGo runs informers of client-go, which watch the API server until the process ends.
func TestInformersOfClientGo(t *testing.T) {
	s := controllerScenario(false)
	setup, seen := s.Setup, map[string]int{}
	s.Setup = func(mgr ctrl.Manager) error {
		clientset, err := kubernetes.NewForConfig(mgr.GetConfig())
		if err != nil {
			return err
		}
		factory := informers.NewSharedInformerFactory(clientset, 0)
		if _, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { seen["add"]++ },
			UpdateFunc: func(any, any) { seen["update"]++ },
			DeleteFunc: func(any) { seen["delete"]++ },
		}); err != nil {
			return err
		}
		if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			factory.Start(ctx.Done())
			<-ctx.Done()
			factory.Shutdown()
			return nil
		})); err != nil {
			return err
		}
		return setup(mgr)
	}
	p := mustPlan(t, s)
	if o := p.execute(t, nil, p.usual(), nil); len(o.Violations) > 0 {
		t.Fatal(o.Violations)
	}
	want := map[string]int{"add": 1, "update": 1, "delete": 1}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	Run(t, s)
}
