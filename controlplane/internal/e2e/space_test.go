// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// large returns a ConfigMap of half a megabyte.
func large(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       map[string]string{"data": strings.Repeat("0123456789abcdef", 32<<10)},
	}
}

// assertRejected returns nil if a creation is rejected because of missing space.
func (p *process) assertRejected(ctx context.Context, message string) error {
	_, err := p.client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "small-"},
	}, metav1.CreateOptions{})
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return errors.New("accepted")
	case !errors.As(err, &status) || status.Status().Code != http.StatusInsufficientStorage,
		!strings.Contains(err.Error(), message):
		return fmt.Errorf("error %w, want status 507 with %q", err, message)
	}
	return nil
}

// A full database rejects writes with a message, still serves reads and deletions, and recovers after deletions.
func TestFullDatabase(t *testing.T) {
	t.Parallel()
	p := start(t, "--controllers", "none", "--pods=false", "--storage-quota", fmt.Sprint(16<<20))
	maps := p.client.CoreV1().ConfigMaps("default")
	const message = "the control plane's storage is full: the database has "
	created := 0
	eventually(t, waitLimit, "rejected", func(ctx context.Context) error {
		for range 5 {
			created++
			_, err := maps.Create(ctx, large(fmt.Sprintf("large-%d", created)), metav1.CreateOptions{})
			if err != nil {
				break // the history may still be removed, which makes space
			}
		}
		return p.assertRejected(ctx, message)
	})
	eventually(t, waitLimit, "warning", func(context.Context) error {
		if !strings.Contains(p.stderr.String(), "warning: "+message) {
			return fmt.Errorf("stderr %q", p.stderr)
		}
		return nil
	})
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) < 10 {
		t.Fatalf("list while the database is full: %v, %d objects", err, len(list.Items))
	}
	for _, item := range list.Items {
		if err := maps.Delete(t.Context(), item.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatalf("deletion while the database is full: %v", err)
		}
	}
	eventually(t, waitLimit, "writes accepted again", func(ctx context.Context) error {
		_, err := maps.Create(ctx, large("after"), metav1.CreateOptions{})
		return err
	})
	if !strings.Contains(p.stderr.String(), "writes are accepted") {
		t.Errorf("stderr %q, want that writes are accepted", p.stderr)
	}
}

// A file system without space does the same, and recovers when files are removed from it.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "small disk")
	mountSmallDisk(t, dir, 96<<20)
	data := filepath.Join(dir, "data")
	p := start(t, "--controllers", "none", "--pods=false", "--dir", data)
	maps := p.client.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), large("before"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	truncate(t, filler, 16<<20)
	const message = "the control plane's disk is full: "
	eventually(t, waitLimit, "rejected", func(ctx context.Context) error { return p.assertRejected(ctx, message) })
	if !strings.Contains(p.stderr.String(), "warning: "+message) {
		t.Errorf("stderr %q, want a warning", p.stderr)
	}
	if _, err := maps.Get(t.Context(), "before", metav1.GetOptions{}); err != nil {
		t.Errorf("read while the disk is full: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "writes accepted again", func(ctx context.Context) error {
		_, err := maps.Create(ctx, large("after"), metav1.CreateOptions{})
		return err
	})
}

// If another program takes the last byte at once, etcd cannot continue. The control plane ends, says why, and starts
// again with its data when there is space.
func TestDiskWithoutAnySpace(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "small disk")
	mountSmallDisk(t, dir, 96<<20)
	arguments := []string{"--controllers", "none", "--pods=false", "--dir", filepath.Join(dir, "data")}
	p := start(t, arguments...)
	maps := p.client.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), large("before"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	for i := range 100 {
		if _, err := maps.Create(t.Context(), large(fmt.Sprint("filling-", i)), metav1.CreateOptions{}); err != nil {
			break
		}
	}
	eventually(t, waitLimit, "explained", func(context.Context) error {
		if text := p.stderr.String(); !strings.Contains(text, "disk is full") && !strings.Contains(text, "no space left") {
			return fmt.Errorf("stderr %q", text)
		}
		return nil
	})
	_ = p.stdin.Close()
	<-p.exited
	_, err := launch(t.TempDir(), arguments...)
	if err == nil || !containsLine(err, "the control plane's disk is full: ") {
		t.Errorf("start without space: %v, want that the disk is full", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	again := start(t, arguments...)
	if _, err := again.client.CoreV1().ConfigMaps("default").Get(t.Context(), "before", metav1.GetOptions{}); err != nil {
		t.Errorf("object after the restart: %v", err)
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = file.Write(block)
	}
	if !isDiskFull(err) {
		t.Fatalf("filling the disk: %v", err)
	}
	_ = file.Close()
}

// truncate makes a file smaller.
func truncate(t *testing.T, name string, by int64) {
	t.Helper()
	info, err := os.Stat(name)
	if err == nil {
		err = os.Truncate(name, info.Size()-by)
	}
	if err != nil {
		t.Fatal(err)
	}
}
