// Renderer: draws the map of the graph with WebGL, behind an interface that another library could fill.

import type Graph from "graphology-types";
import Sigma from "sigma";
import { EdgeLineProgram, EdgeRectangleProgram, NodeCircleProgram } from "sigma/rendering";
import type { Box, Scene } from "./graph_map";

/** What is drawn over the map: rings around nodes, and lines between pairs of nodes, by their places in the scene. */
export interface Marks {
  nodes: number[];
  lines: [number, number][];
}

export interface Listeners {
  onMove: (view: Box) => void;
  onNode: (node: number | undefined) => void;
  onLost: () => void;
}

export interface Renderer {
  show(scene: Scene): void;
  mark(marks: Marks): void;
  /** Move until the box, by default the whole map, fills the view. */
  fit(box?: Box): void;
  zoom(factor: number): void;
  /** Move by parts of the view. */
  pan(right: number, down: number): void;
  png(): Promise<Blob>;
  end(): void;
}

const MIN_RADIUS = { far: 1, middle: 3.5, near: 6 }; // pixels
const LABEL_FROM = { far: 14, middle: 2, near: 2 }; // pixels of radius
const MOVE_MS = 150; // without movement, before the view counts as moved
const EDGE_OPACITY = { few: 0.35, many: 0.1 }; // up to 1,000 edges, and from there less and less
const FILL = { container: 0.1, bubble: 0.6 };
const LABEL_SIZE = 12;

/** Draw in an element; throws where the browser has no WebGL. `bounds` are those of the whole map. */
export function startRenderer(element: HTMLElement, bounds: Box, listeners: Listeners): Renderer {
  let scene: Scene | undefined;
  let marks: Marks = { nodes: [], lines: [] };
  let timer = 0;
  let ink = inkOf(element);
  const sigma = new Sigma(graphOf(), element, {
    allowInvalidContainer: true,
    defaultDrawNodeHover: (context, node) => drawHover(context, node, ink),
    defaultDrawNodeLabel: (context, node) => drawLabel(context, node as unknown as LabelledNode, ink),
    edgeProgramClasses: { line: EdgeLineProgram, wide: EdgeRectangleProgram },
    enableCameraRotation: false,
    hideEdgesOnMove: true,
    itemSizesReference: "positions",
    labelDensity: 1,
    labelGridCellSize: 90,
    maxCameraRatio: 1.6,
    minCameraRatio: 0.002,
    minEdgeThickness: 1,
    nodeProgramClasses: { circle: NodeCircleProgram },
    stagePadding: 4,
    zoomToSizeRatioFunction: (ratio) => ratio, // sizes grow with the map
  });
  // Without an argument `refresh` indexes all nodes and edges again, also when a drag ends: drawing again is enough.
  const index = sigma.refresh.bind(sigma);
  sigma.refresh = (options) => (options ? index(options) : sigma.scheduleRender());
  // The node below the pointer is read back from the graphics card, which waits for the picture: not while the map is dragged.
  const pick = sigma["getNodeAtPosition"].bind(sigma);
  sigma["getNodeAtPosition"] = (position: { x: number; y: number }) => (sigma.getMouseCaptor().isMoving ? null : pick(position));
  sigma.setCustomBBox({ x: [bounds[0], bounds[2]], y: [bounds[1], bounds[3]] });
  sigma.createCanvasContext("marks", { style: { pointerEvents: "none" } });
  const { marks: overlay, labels } = sigma.getCanvases() as Record<string, HTMLCanvasElement>;
  labels!.before(overlay!);
  sigma.resize(true); // also the new layer
  sigma.on("afterRender", () => scene && drawMarks(sigma, overlay!.getContext("2d")!, scene, marks, ink));
  sigma.on("clickNode", ({ node }) => listeners.onNode(Number(node)));
  sigma.on("clickStage", () => listeners.onNode(undefined));
  const moved = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => listeners.onMove(viewOf(sigma).box), MOVE_MS);
  };
  sigma.getCamera().on("updated", moved);
  sigma.on("resize", moved);
  element.addEventListener("webglcontextlost", listeners.onLost, true);

  const move = (state: Partial<{ x: number; y: number; ratio: number }>) => {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) sigma.getCamera().setState(state);
    else void sigma.getCamera().animate(state, { duration: 250 });
  };

  return {
    show(next) {
      scene = next;
      ink = inkOf(element);
      marks = { nodes: [], lines: [] };
      const { level } = next.map;
      sigma.setSetting("labelRenderedSizeThreshold", LABEL_FROM[level]);
      sigma.setGraph(graphOf(next, MIN_RADIUS[level] / viewOf(sigma).scale, ink));
      index();
    },
    mark(next) {
      marks = next;
      sigma.scheduleRender();
    },
    fit(box = bounds) {
      const { width, height } = sigma.getDimensions();
      const corners = [sigma.graphToViewport({ x: box[0], y: box[1] }), sigma.graphToViewport({ x: box[2], y: box[3] })] as const;
      const wide = Math.abs(corners[1].x - corners[0].x) / width;
      const high = Math.abs(corners[1].y - corners[0].y) / height;
      const middle = { x: (corners[0].x + corners[1].x) / 2, y: (corners[0].y + corners[1].y) / 2 };
      const ratio = sigma.getCamera().ratio * Math.max(wide, high) * 1.15;
      move({ ...sigma.viewportToFramedGraph(middle), ratio: Math.min(Math.max(ratio, 0.002), 1.6) });
    },
    zoom(factor) {
      move({ ratio: sigma.getCamera().getBoundedRatio(sigma.getCamera().ratio / factor) });
    },
    pan(right, down) {
      const { width, height } = sigma.getDimensions();
      move(sigma.viewportToFramedGraph({ x: width * (0.5 + right), y: height * (0.5 + down) }));
    },
    png: () => pngOf(sigma, ink.ground),
    end() {
      clearTimeout(timer);
      element.removeEventListener("webglcontextlost", listeners.onLost, true);
      sigma.kill();
    },
  };
}

/** Return the part of the map in view, and the pixels of one unit. */
function viewOf(sigma: Sigma): { box: Box; scale: number } {
  const { width, height } = sigma.getDimensions();
  const [first, second] = [sigma.viewportToGraph({ x: 0, y: height }), sigma.viewportToGraph({ x: width, y: 0 })];
  return { box: [first.x, first.y, second.x, second.y], scale: width / (second.x - first.x) };
}

interface Ink {
  ground: string;
  panel: string;
  text: string;
  accent: string;
  font: string;
}

/** The colours of the page, which depend on its theme. */
function inkOf(element: HTMLElement): Ink {
  const style = getComputedStyle(element);
  const value = (name: string) => style.getPropertyValue(name).trim();
  return { ground: value("--ground"), panel: value("--panel"), text: value("--text"), accent: value("--accent"), font: style.fontFamily };
}

/** A scene as sigma reads it: the reading part of a graphology graph, which never changes. */
class SceneGraph {
  readonly multi = true; // with the next two, what sigma tells a graph by
  readonly order: number;
  readonly #nodes: object[];
  readonly #edges: object[];
  readonly #scene: Scene | undefined;

  /** `smallest` is the smallest radius, in units of the map. */
  constructor(scene?: Scene, smallest = 0, ink?: Ink) {
    this.#scene = scene;
    const middle = scene ? middleOf(scene) : 0;
    this.#nodes = scene ? scene.map.ids.map((_, node) => nodeOf(scene, node, smallest, middle)) : [];
    const look = scene && edgeLook(scene, smallest, ink!);
    this.#edges = scene ? Array.from(scene.widths, (width) => ({ ...look!, size: width * look!.size })) : [];
    this.order = this.#nodes.length;
  }
  addUndirectedEdgeWithKey() {}
  dropNode() {}
  on() {}
  removeListener() {}
  nodes = () => this.#nodes.map((_, node) => String(node));
  edges = () => this.#edges.map((_, edge) => String(edge));
  hasNode = (node: string) => Number(node) < this.order;
  hasEdge = (edge: string) => Number(edge) < this.#edges.length;
  getNodeAttributes = (node: string) => this.#nodes[Number(node)];
  getEdgeAttributes = (edge: string) => this.#edges[Number(edge)];
  extremities = (edge: string) => [this.#ends("source", Number(edge)), this.#ends("target", Number(edge))];
  forEachNode(visit: (node: string, attributes: object) => void) {
    this.#nodes.forEach((attributes, node) => visit(String(node), attributes));
  }
  forEachEdge(visit: (edge: string, attributes: object, source: string, target: string) => void) {
    this.#edges.forEach((attributes, edge) => visit(String(edge), attributes, this.#ends("source", edge), this.#ends("target", edge)));
  }
  #ends(side: "source" | "target", edge: number) {
    return String(this.#scene!.map.edges[side][edge]);
  }
}

const graphOf = (...parts: ConstructorParameters<typeof SceneGraph>) => new SceneGraph(...parts) as unknown as Graph;

/** The place from left to right in the middle of all nodes. */
function middleOf({ map }: Scene): number {
  return map.nodes.x.reduce((sum, x) => sum + x, 0) / Math.max(map.ids.length, 1);
}

function placeOfLabel({ map, isContainer }: Scene, node: number, middle: number): LabelPlace {
  if (map.level === "far") return isContainer[node] ? "top" : "middle";
  return map.level === "near" && map.nodes.x[node]! < middle - 1 ? "left" : "right"; // around one entity, names point outwards
}

function nodeOf(scene: Scene, node: number, smallest: number, middle: number): object {
  const { nodes, labels, level } = scene.map;
  const isContainer = scene.isContainer[node];
  return {
    x: nodes.x[node],
    y: nodes.y[node],
    size: Math.max(scene.radius[node]!, smallest),
    color: premultiplied(scene.colours[node]!, level !== "far" ? 1 : isContainer ? FILL.container : FILL.bubble),
    label: labels[node],
    place: placeOfLabel(scene, node, middle),
  };
}

function edgeLook({ map: { level }, nEdges }: Scene, smallest: number, ink: Ink) {
  const opacity = Math.max(EDGE_OPACITY.few * Math.min(1, Math.sqrt(1_000 / Math.max(nEdges, 1))), EDGE_OPACITY.many);
  return { type: level === "middle" ? "line" : "wide", color: premultiplied(ink.text, opacity), size: smallest / MIN_RADIUS[level] };
}

/** Return a colour as WebGL mixes it: its parts are multiplied by the opacity before. */
function premultiplied(colour: string, opacity: number): string {
  const parts = [1, 3, 5].map((at) => Math.round(parseInt(colour.slice(at, at + 2), 16) * opacity));
  return `rgba(${parts.join(",")},${opacity})`;
}

type LabelPlace = "left" | "right" | "top" | "middle";

interface LabelledNode {
  x: number;
  y: number;
  size: number;
  label: string | null;
  place: LabelPlace;
}

function drawLabel(context: CanvasRenderingContext2D, node: LabelledNode, ink: Ink): void {
  if (!node.label) return;
  context.font = `${LABEL_SIZE}px ${ink.font}`;
  const side = { left: -1, right: 1, top: 0, middle: 0 }[node.place];
  context.textAlign = side ? (side > 0 ? "left" : "right") : "center";
  const text = side ? shortened(node.label, 40) : fitting(context, node.label, Math.max(node.size * 2, 60));
  const x = node.x + side * (node.size + 3);
  const y = node.y + LABEL_SIZE / 3 - (node.place === "top" ? node.size - LABEL_SIZE : 0);
  context.strokeStyle = ink.ground;
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeText(text, x, y);
  context.fillStyle = ink.text;
  context.fillText(text, x, y);
}

function fitting(context: CanvasRenderingContext2D, text: string, width: number): string {
  let length = 40;
  while (length > 4 && context.measureText(shortened(text, length)).width > width) length -= 3;
  return shortened(text, length);
}

function shortened(text: string, length: number): string {
  const letters = [...text];
  return letters.length > length ? `${letters.slice(0, length - 1).join("")}…` : text;
}

function drawHover(context: CanvasRenderingContext2D, node: { x: number; y: number; size: number; label?: string | null }, ink: Ink): void {
  ring(context, node.x, node.y, node.size, ink.accent);
  if (!node.label) return;
  context.font = `600 ${LABEL_SIZE}px ${ink.font}`;
  context.textAlign = "left";
  const text = shortened(node.label, 60);
  const [x, y] = [node.x + Math.min(node.size, 60) + 6, node.y];
  context.fillStyle = ink.panel;
  context.fillRect(x - 4, y - LABEL_SIZE, context.measureText(text).width + 8, 2 * LABEL_SIZE);
  context.fillStyle = ink.text;
  context.fillText(text, x, y + LABEL_SIZE / 3);
}

function ring(context: CanvasRenderingContext2D, x: number, y: number, radius: number, colour: string): void {
  context.strokeStyle = colour;
  context.lineWidth = 2.5;
  context.beginPath();
  context.arc(x, y, radius + 2, 0, 2 * Math.PI);
  context.stroke();
}

function drawMarks(sigma: Sigma, context: CanvasRenderingContext2D, scene: Scene, marks: Marks, ink: Ink): void {
  const { width, height } = sigma.getDimensions();
  context.clearRect(0, 0, width, height);
  const { x, y } = scene.map.nodes;
  const at = (node: number) => sigma.graphToViewport({ x: x[node]!, y: y[node]! });
  context.strokeStyle = ink.accent;
  context.lineWidth = 1.5;
  for (const [first, second] of marks.lines) {
    const [from, to] = [at(first), at(second)];
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
  }
  for (const node of marks.nodes) {
    const place = at(node);
    const size = sigma.scaleSize(sigma.getNodeDisplayData(String(node))?.size ?? 0);
    ring(context, place.x, place.y, size, ink.accent);
    const isLabelled = sigma.getNodeDisplayedLabels().has(String(node));
    if (!isLabelled) drawLabel(context, { ...place, size: size + 3, label: scene.map.labels[node]!, place: "right" }, ink);
  }
}

async function pngOf(sigma: Sigma, ground: string): Promise<Blob> {
  sigma.refresh({ partialGraph: {}, skipIndexation: true }); // the layers of WebGL can be read only in the task that draws them
  const layers = Object.values(sigma.getCanvases());
  const canvas = document.createElement("canvas");
  canvas.width = layers[0]!.width;
  canvas.height = layers[0]!.height;
  const context = canvas.getContext("2d")!;
  context.fillStyle = ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const layer of layers) context.drawImage(layer, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The picture is empty."))), "image/png"));
}
