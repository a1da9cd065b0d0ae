// SPDX-License-Identifier: GPL-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containerd/nri/pkg/api"
)

// The annotations of a pod. That of a container has the container's name after the slash.
const (
	containerPrefix = "weight.mqfair/"
	podAnnotation   = "mqfair/pod-weight"
)

// The kernel's file, and the range of its values.
const (
	weightFile  = "io.weight"
	leastWeight = 1
	mostWeight  = 10000
)

// plugin answers the events of a container runtime. It keeps no state.
type plugin struct {
	cgroups  string
	complain func(format string, values ...any)
}

// weight returns the value of the annotation, and whether it is there. An error names the pod, the
// annotation and the range.
func weight(pod *api.PodSandbox, annotation string) (value int, found bool, err error) {
	text, found := pod.GetAnnotations()[annotation]
	if !found {
		return 0, false, nil
	}
	value, err = strconv.Atoi(text)
	if err != nil || value < leastWeight || value > mostWeight {
		return 0, true, fmt.Errorf("pod %s/%s: annotation %s: %q is no weight: use a number from %d to %d",
			pod.GetNamespace(), pod.GetName(), annotation, text, leastWeight, mostWeight)
	}
	return value, true, nil
}

// setting returns the line for io.weight of a container; empty without an annotation.
func (p *plugin) setting(pod *api.PodSandbox, container *api.Container) (string, error) {
	value, found, err := weight(pod, containerPrefix+container.GetName())
	if err != nil || !found {
		return "", err
	}
	if !p.kernelHasWeights() {
		return "", fmt.Errorf("pod %s/%s: the kernel has no %s below %s: build it with BLK_CGROUP_IOCOST",
			pod.GetNamespace(), pod.GetName(), weightFile, p.cgroups)
	}
	return fmt.Sprintf("default %d", value), nil
}

// kernelHasWeights returns whether the cgroups below the root have an io.weight. The runtime would
// not start a container for which it cannot write the file.
func (p *plugin) kernelHasWeights() bool {
	found, _ := filepath.Glob(filepath.Join(p.cgroups, "*", weightFile))
	return len(found) > 0
}

// podCgroup returns the folder of a pod's cgroup. A manager of the type systemd names a slice alone,
// and the slices above it follow from its name.
func podCgroup(parent string) string {
	name := strings.TrimSuffix(parent, ".slice")
	if name == parent || strings.Contains(parent, "/") {
		return parent
	}
	var folders []string
	for at, letter := range name {
		if letter == '-' {
			folders = append(folders, name[:at]+".slice")
		}
	}
	return filepath.Join(append(folders, parent)...)
}

// setPod writes the weight of a pod to its cgroup.
func (p *plugin) setPod(pod *api.PodSandbox) error {
	value, found, err := weight(pod, podAnnotation)
	if err != nil || !found {
		return err
	}
	file := filepath.Join(p.cgroups, podCgroup(pod.GetLinux().GetCgroupParent()), weightFile)
	// The kernel makes the file. Another one must not be made here.
	opened, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		defer opened.Close()
		_, err = fmt.Fprintf(opened, "default %d\n", value)
	}
	if err != nil {
		return fmt.Errorf("pod %s/%s: its weight was not set: %w", pod.GetNamespace(), pod.GetName(), err)
	}
	return nil
}

// RunPodSandbox sets the weight of a new pod. A wrong annotation does not stop the pod.
func (p *plugin) RunPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	if err := p.setPod(pod); err != nil {
		p.complain("%v", err)
	}
	return nil
}

// CreateContainer gives the runtime the weight of a new container. A wrong annotation does not stop
// the container.
func (p *plugin) CreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) (
	*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	line, err := p.setting(pod, container)
	if err != nil {
		p.complain("%v", err)
	}
	if line == "" {
		return nil, nil, nil
	}
	adjustment := &api.ContainerAdjustment{}
	adjustment.AddLinuxUnified(weightFile, line)
	return adjustment, nil, nil
}

// Synchronize sets the weights of the pods and containers that were there before the plugin.
func (p *plugin) Synchronize(_ context.Context, pods []*api.PodSandbox, containers []*api.Container) (
	[]*api.ContainerUpdate, error) {
	byID := map[string]*api.PodSandbox{}
	for _, pod := range pods {
		byID[pod.GetId()] = pod
		if err := p.setPod(pod); err != nil {
			p.complain("%v", err)
		}
	}
	var updates []*api.ContainerUpdate
	for _, container := range containers {
		line, err := p.setting(byID[container.GetPodSandboxId()], container)
		if err != nil {
			p.complain("%v", err)
		}
		if line == "" {
			continue
		}
		update := &api.ContainerUpdate{ContainerId: container.GetId()}
		update.AddLinuxUnified(weightFile, line)
		update.SetIgnoreFailure()
		updates = append(updates, update)
	}
	return updates, nil
}
