// Graph map: reads the map of the server, and turns it into what is drawn. docs/graph_map.md describes the binary layout.

import { query, send, workspaceUrl } from "./api";

export type Level = "far" | "middle" | "near";
export type Box = [number, number, number, number]; // the smallest x and y, the largest x and y
export type Colouring = "type" | "community";

export interface GraphMap {
  level: Level;
  revision: number;
  bounds: Box;
  n_entities: number;
  n_relations: number;
  types: string[];
  communities: string[];
  n_more_nodes: number;
  n_more_edges: number;
  ids: string[];
  labels: string[];
  nodes: { x: Float32Array; y: Float32Array; size: Uint32Array; type: Uint32Array; community: Int32Array; radius?: Float32Array; parent?: Int32Array };
  edges: { source: Uint32Array; target: Uint32Array; weight: Float32Array };
}

/** What the map shows: the part in view, the filters, and for the level near the entities. */
export interface MapQuery {
  level: Level;
  box?: Box;
  name?: string[];
  type?: string[];
  community?: string[];
  max_nodes?: number;
}

const RING = 9; // from one ring of neighbours to the next, in units of the map
const PER_RING = 20; // neighbours on the first ring; twice as many fit on the second

const ARRAYS = { float32: Float32Array, uint32: Uint32Array, int32: Int32Array };
const START = 16; // bytes before the header
const MAX_NODES = 4_000; // drawn at once: more are a grey sheet, and freeze the page while they are indexed
const MAX_EDGES = { far: 3_000, middle: 8_000, near: 6_000 };
export const MAX_DETAILED = 2_000; // entities of a graph that is shown without communities
const MAX_EXPECTED = 7_000; // entities in the tiles; where more are to be expected, communities are shown

/** Return the map that the server draws. An unchanged map comes from the browser's cache. */
export async function loadMap({ level, box, ...filters }: MapQuery, signal?: AbortSignal): Promise<GraphMap> {
  const limit = level === "middle" ? MAX_NODES : undefined;
  const parameters = query({ max_nodes: limit, ...filters, box: box?.join(",") });
  const reply = await send("GET", workspaceUrl(`/graph/map/${level}${parameters}`), undefined, { signal, headers: { accept: "application/octet-stream" } });
  const map = readMap(await reply.arrayBuffer());
  if (level === "near") arrange(map, filters.name ?? []);
  return map;
}

/** Place a few entities so that each can be read: one in the middle of rings of its neighbours, or a path in a row. */
function arrange({ ids, nodes, edges }: GraphMap, names: string[]): void {
  const [first] = names.map((name) => ids.indexOf(name));
  if (first === undefined || first < 0) return;
  const [x, y] = [nodes.x[first]!, nodes.y[first]!];
  if (names.length > 1)
    return names.forEach((name, place) => {
      const node = ids.indexOf(name);
      if (node >= 0) (nodes.x[node] = x + place * RING), (nodes.y[node] = y);
    });
  const angle = (node: number) => Math.atan2(nodes.y[node]! - y, nodes.x[node]! - x);
  const others = [...new Set([...neighboursOf({ edges }, first), ...ids.keys()])].filter((node) => node !== first); // heaviest first
  for (let ring = 1; others.length; ring++) {
    const around = others.splice(0, PER_RING * ring).sort((a, b) => angle(a) - angle(b) || a - b);
    const turn = angle(around[0]!);
    const places = around.map((_, place) => turn + (2 * Math.PI * place) / around.length);
    around.forEach((node, place) => {
      nodes.x[node] = x + RING * ring * Math.cos(places[place]!);
      nodes.y[node] = y + RING * ring * Math.sin(places[place]!);
    });
  }
}

/** Read a map in the binary layout; its arrays lie in the buffer. */
export function readMap(buffer: ArrayBuffer): GraphMap {
  const [, , headerLength, textLength] = new Uint32Array(buffer, 0, START / 4) as unknown as [number, number, number, number];
  const decode = (start: number, length: number) => JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, start, length)));
  const { arrays, ...header } = decode(START, headerLength);
  const groups: Record<string, Record<string, unknown>> = { nodes: {}, edges: {} };
  for (const { of, name, type, offset, length } of arrays as { of: string; name: string; type: keyof typeof ARRAYS; offset: number; length: number }[])
    groups[of]![name] = new ARRAYS[type](buffer, START + headerLength + offset, length);
  return { ...header, ...groups, ...decode(buffer.byteLength - textLength, textLength) };
}

/** Return the level of detail and the tiles for a view. */
export function tilesInView(nEntities: number, bounds: Box, view: Box): { level: Level; box?: Box } {
  if (nEntities <= MAX_DETAILED) return { level: "middle" };
  const side = 2 ** Math.ceil(Math.log2(Math.max(view[2] - view[0], view[3] - view[1]) / 4));
  const down = (value: number) => Math.floor(value / side) * side;
  const up = (value: number) => Math.ceil(value / side) * side;
  const box: Box = [down(view[0]), down(view[1]), up(view[2]), up(view[3])];
  const seen: Box = [Math.max(box[0], bounds[0]), Math.max(box[1], bounds[1]), Math.min(box[2], bounds[2]), Math.min(box[3], bounds[3])];
  const isAll = seen.every((value, at) => value === bounds[at]);
  const expected = (nEntities * areaOf(seen)) / areaOf(bounds) / (Math.PI / 4); // a map is a disc in its box
  const level = expected <= MAX_EXPECTED ? "middle" : "far";
  return isAll ? { level } : { level, box };
}

function areaOf([x0, y0, x1, y1]: Box): number {
  return Math.max(x1 - x0, 0) * Math.max(y1 - y0, 0);
}

/** What a renderer draws: positions and radii in units of the map, colours for the ground that is shown. */
export interface Scene {
  map: GraphMap;
  radius: Float32Array;
  colours: string[];
  isContainer: boolean[]; // a community with others inside
  nEdges: number;
  widths: Float32Array; // of edges, in pixels
}

/** Return the scene of a map; `colourOf` says the colour of a node. */
export function sceneOf(map: GraphMap, colourOf: (node: number) => string): Scene {
  const { nodes, edges, ids } = map;
  const isContainer = ids.map(() => false);
  nodes.parent?.forEach((parent) => parent >= 0 && (isContainer[parent] = true));
  const largest = nodes.size.reduce((a, b) => Math.max(a, b), 1);
  const radius = nodes.radius ?? Float32Array.from(nodes.size, (size) => 0.4 + 0.8 * Math.sqrt(size / largest));
  const nEdges = Math.min(edges.weight.length, MAX_EDGES[map.level]);
  const heaviest = edges.weight[0] ?? 1; // the heaviest edges come first
  const widths = Float32Array.from(edges.weight.subarray(0, nEdges), (weight) => 0.7 + 2.3 * Math.sqrt(weight / heaviest));
  return { map, radius, colours: ids.map((_, node) => colourOf(node)), isContainer, nEdges, widths };
}

/** Return the place of each type among the colours: those that say nothing have the last one. */
export function placesOfTypes(types: string[]): Map<string, number> {
  const telling = types.filter((type) => type && type !== "Other");
  return new Map(types.map((type) => [type, telling.indexOf(type)]));
}

// Ten colours that people tell apart, also most of those who see fewer; the last one is for all that come after.
const PALETTE = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#ff9da7", "#9c755f", "#8b9196"];

/** Return the colour of the type or community at a place in the legend. */
export function paletteColour(place: number): string {
  return PALETTE[place < 0 ? PALETTE.length - 1 : Math.min(place, PALETTE.length - 1)]!;
}

/** Return the places of the nodes that an edge joins with a node. */
export function neighboursOf(map: Pick<GraphMap, "edges">, node: number): number[] {
  const { source, target } = map.edges;
  const places: number[] = [];
  for (let edge = 0; edge < source.length; edge++) {
    if (source[edge] === node) places.push(target[edge]!);
    else if (target[edge] === node) places.push(source[edge]!);
  }
  return places;
}
