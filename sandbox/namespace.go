// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	suffixLength     = 5
	namespaceTimeout = 10 * time.Second
	// testLabel marks the namespaces of tests. In an existing cluster it identifies the namespaces of killed tests.
	testLabel = "trueup.dev/test"
	// defaultServiceAccount is the account of pods that do not set another.
	defaultServiceAccount = "default"
)

// namespacePrefix returns a readable prefix for a namespace from the name of a test: "TestA/b_c" becomes "testa-b-c-".
func namespacePrefix(test string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(test) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := b.String()
	if limit := validation.DNS1123LabelMaxLength - suffixLength - 1; len(name) > limit {
		name = name[:limit]
	}
	name = strings.TrimSuffix(name, "-")
	if name == "" {
		name = "test"
	}
	return name + "-"
}

// createNamespace creates a namespace for the named test.
func createNamespace(
	ctx context.Context, client corev1client.CoreV1Interface, test string, labels map[string]string,
) (string, error) {
	prefix := namespacePrefix(test)
	namespace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{testLabel: strings.TrimSuffix(prefix, "-")}},
	}
	for key, value := range labels {
		namespace.Labels[key] = value
	}
	for {
		namespace.Name = prefix + rand.String(suffixLength)
		_, err := client.Namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldManager})
		if !apierrors.IsAlreadyExists(err) {
			return namespace.Name, err
		}
	}
}

// awaitServiceAccount waits for the default service account of a new namespace. The API server rejects pods until a
// controller has created it.
func awaitServiceAccount(ctx context.Context, client corev1client.CoreV1Interface, namespace string) error {
	err := poll(ctx, func() (bool, error) {
		_, err := client.ServiceAccounts(namespace).Get(ctx, defaultServiceAccount, metav1.GetOptions{})
		return err == nil || !apierrors.IsNotFound(err), err
	})
	if err != nil {
		return fmt.Errorf("its service account %q: %w", defaultServiceAccount, err)
	}
	return nil
}
